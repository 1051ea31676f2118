// Written by `npm run build` in web/. Digest of the sources: 9f6d1f08c20d3e450da5b65172fb652497c1be20603f74ad137e22952ef77f59
&[
    PageFile { path: "/assets/AppPage-DWGyL7pV.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-AppPage-DWGyL7pV.js.gz") },
    PageFile { path: "/assets/Events-D6ezonyV.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Events-D6ezonyV.js.gz") },
    PageFile { path: "/assets/History-DBXBrY5r.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-History-DBXBrY5r.js.gz") },
    PageFile { path: "/assets/InClusters-BQKf73xD.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-InClusters-BQKf73xD.js.gz") },
    PageFile { path: "/assets/Logs-C0AzUoPL.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Logs-C0AzUoPL.js.gz") },
    PageFile { path: "/assets/Matrix-wIX-ccdG.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Matrix-wIX-ccdG.js.gz") },
    PageFile { path: "/assets/Objects-G10qlDBR.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Objects-G10qlDBR.js.gz") },
    PageFile { path: "/assets/SearchPage-DGKKA2aM.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-SearchPage-DGKKA2aM.js.gz") },
    PageFile { path: "/assets/Time-CtdEwCRA.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Time-CtdEwCRA.js.gz") },
    PageFile { path: "/assets/Trust-Ds8pOAJp.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Trust-Ds8pOAJp.js.gz") },
    PageFile { path: "/assets/Why-CL_2lpuV.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Why-CL_2lpuV.js.gz") },
    PageFile { path: "/assets/index-Zq2O200A.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-index-Zq2O200A.js.gz") },
    PageFile { path: "/assets/style-evJTkn2E.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("assets-style-evJTkn2E.css.gz") },
    PageFile { path: "/assets/worker-DL4U0pv4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-worker-DL4U0pv4.js.gz") },
    PageFile { path: "/favicon.svg", content_type: "image/svg+xml", gzip: include_bytes!("favicon.svg.gz") },
    PageFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
]
