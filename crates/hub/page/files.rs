// Written by `npm run build` in web/. Digest of the sources: 0027211548860e28fe78a0f739ae32ab240e51ee0219b683aecea8e86b49879b
&[
    PageFile { path: "/assets/AppPage-B3hQhVSd.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-AppPage-B3hQhVSd.js.gz") },
    PageFile { path: "/assets/Events-D9IzkWeX.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Events-D9IzkWeX.js.gz") },
    PageFile { path: "/assets/History-DdUyjleu.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-History-DdUyjleu.js.gz") },
    PageFile { path: "/assets/InClusters-BqU_8KqV.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-InClusters-BqU_8KqV.js.gz") },
    PageFile { path: "/assets/Logs-CaMneb0N.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Logs-CaMneb0N.js.gz") },
    PageFile { path: "/assets/Matrix-K51qEPk3.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Matrix-K51qEPk3.js.gz") },
    PageFile { path: "/assets/Objects-C3vR05n2.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Objects-C3vR05n2.js.gz") },
    PageFile { path: "/assets/SearchPage-CuB8S2tc.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-SearchPage-CuB8S2tc.js.gz") },
    PageFile { path: "/assets/Time-VUPfj9Ja.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Time-VUPfj9Ja.js.gz") },
    PageFile { path: "/assets/Trust-2YV8W9sf.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Trust-2YV8W9sf.js.gz") },
    PageFile { path: "/assets/Why-HM_CoGZt.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Why-HM_CoGZt.js.gz") },
    PageFile { path: "/assets/index-nVgQwTMC.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-index-nVgQwTMC.js.gz") },
    PageFile { path: "/assets/style-evJTkn2E.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("assets-style-evJTkn2E.css.gz") },
    PageFile { path: "/assets/worker-DL4U0pv4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-worker-DL4U0pv4.js.gz") },
    PageFile { path: "/favicon.svg", content_type: "image/svg+xml", gzip: include_bytes!("favicon.svg.gz") },
    PageFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
]
