// Written by `npm run build` in web/. Digest of the sources: 3b79222c85b851549680a9e7445e7117d8268de2b76e53a385717bbbb43244ba
&[
    PageFile { path: "/assets/AppPage-DJvcj9o-.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-AppPage-DJvcj9o-.js.gz") },
    PageFile { path: "/assets/Events-eHzGkanq.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Events-eHzGkanq.js.gz") },
    PageFile { path: "/assets/History-DUJ-jqTz.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-History-DUJ-jqTz.js.gz") },
    PageFile { path: "/assets/InClusters-Dq6pW43v.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-InClusters-Dq6pW43v.js.gz") },
    PageFile { path: "/assets/Logs-DDTYVm89.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Logs-DDTYVm89.js.gz") },
    PageFile { path: "/assets/Matrix-DVwY754X.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Matrix-DVwY754X.js.gz") },
    PageFile { path: "/assets/Objects-RCTWhgqA.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Objects-RCTWhgqA.js.gz") },
    PageFile { path: "/assets/Why-Ddzd7HGT.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Why-Ddzd7HGT.js.gz") },
    PageFile { path: "/assets/index-D_N7Spuj.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-index-D_N7Spuj.js.gz") },
    PageFile { path: "/assets/style-knCxPRp0.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("assets-style-knCxPRp0.css.gz") },
    PageFile { path: "/assets/worker-DL4U0pv4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-worker-DL4U0pv4.js.gz") },
    PageFile { path: "/favicon.svg", content_type: "image/svg+xml", gzip: include_bytes!("favicon.svg.gz") },
    PageFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
]
