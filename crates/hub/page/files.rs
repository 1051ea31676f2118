// Written by `npm run build` in web/. Digest of the sources: 5052752ac5f0df75384a7a32477a75c7ac0b15f0048f1a1ad13da20b30676177
&[
    PageFile { path: "/assets/AppPage-Kfa4xDj3.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-AppPage-Kfa4xDj3.js.gz") },
    PageFile { path: "/assets/Events-Ci28eYCq.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Events-Ci28eYCq.js.gz") },
    PageFile { path: "/assets/History--6d7PrLG.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-History--6d7PrLG.js.gz") },
    PageFile { path: "/assets/InClusters-BQnR7FL_.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-InClusters-BQnR7FL_.js.gz") },
    PageFile { path: "/assets/Logs-0NZvAsjE.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Logs-0NZvAsjE.js.gz") },
    PageFile { path: "/assets/Matrix-ClXFDLTD.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Matrix-ClXFDLTD.js.gz") },
    PageFile { path: "/assets/Objects-BTMMfGVW.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Objects-BTMMfGVW.js.gz") },
    PageFile { path: "/assets/Why-D9uDtehl.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Why-D9uDtehl.js.gz") },
    PageFile { path: "/assets/index-DBS0yaov.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-index-DBS0yaov.js.gz") },
    PageFile { path: "/assets/style-DnkuX4La.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("assets-style-DnkuX4La.css.gz") },
    PageFile { path: "/assets/worker-DL4U0pv4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-worker-DL4U0pv4.js.gz") },
    PageFile { path: "/favicon.svg", content_type: "image/svg+xml", gzip: include_bytes!("favicon.svg.gz") },
    PageFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
]
