// Written by `npm run build` in web/. Digest of the sources: 55bd83ac10c77e8119347ab8e07dd2afdcc0b2904a112c1ffd9d1c592677b761
&[
    PageFile { path: "/assets/AppPage-i_Hy4jET.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-AppPage-i_Hy4jET.js.gz") },
    PageFile { path: "/assets/Events-CpDo5232.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Events-CpDo5232.js.gz") },
    PageFile { path: "/assets/History-C-092iWn.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-History-C-092iWn.js.gz") },
    PageFile { path: "/assets/InClusters-BwdQ2ICC.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-InClusters-BwdQ2ICC.js.gz") },
    PageFile { path: "/assets/Logs-ClSyCuBY.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Logs-ClSyCuBY.js.gz") },
    PageFile { path: "/assets/Matrix-C8U9k4mp.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Matrix-C8U9k4mp.js.gz") },
    PageFile { path: "/assets/Objects-BeNRUw-d.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Objects-BeNRUw-d.js.gz") },
    PageFile { path: "/assets/SearchPage-Di-xQfjJ.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-SearchPage-Di-xQfjJ.js.gz") },
    PageFile { path: "/assets/Time-Te3beDwj.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Time-Te3beDwj.js.gz") },
    PageFile { path: "/assets/Trust-DBDauMmy.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Trust-DBDauMmy.js.gz") },
    PageFile { path: "/assets/Why-BpBI0-rD.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Why-BpBI0-rD.js.gz") },
    PageFile { path: "/assets/index-BBj3XvV-.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-index-BBj3XvV-.js.gz") },
    PageFile { path: "/assets/style-evJTkn2E.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("assets-style-evJTkn2E.css.gz") },
    PageFile { path: "/assets/worker-DL4U0pv4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-worker-DL4U0pv4.js.gz") },
    PageFile { path: "/favicon.svg", content_type: "image/svg+xml", gzip: include_bytes!("favicon.svg.gz") },
    PageFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
]
