// Written by `npm run build` in web/. Digest of the sources: 368edefb1a896630a4e00018be81a119345a8ac6cc69b874c8804062f88b0c2d
&[
    PageFile { path: "/assets/AppPage-BUKQ7b36.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-AppPage-BUKQ7b36.js.gz") },
    PageFile { path: "/assets/Events-0uWI3Clb.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Events-0uWI3Clb.js.gz") },
    PageFile { path: "/assets/History-DyZ-A1l1.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-History-DyZ-A1l1.js.gz") },
    PageFile { path: "/assets/InClusters-Ckn1IFTQ.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-InClusters-Ckn1IFTQ.js.gz") },
    PageFile { path: "/assets/Logs-B2yMbTW4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Logs-B2yMbTW4.js.gz") },
    PageFile { path: "/assets/Matrix-Ci9hxny9.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Matrix-Ci9hxny9.js.gz") },
    PageFile { path: "/assets/Objects-bhZ6Nmhy.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Objects-bhZ6Nmhy.js.gz") },
    PageFile { path: "/assets/Why-BIjPLcfl.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Why-BIjPLcfl.js.gz") },
    PageFile { path: "/assets/index--kCAYY17.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-index--kCAYY17.js.gz") },
    PageFile { path: "/assets/style-DnkuX4La.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("assets-style-DnkuX4La.css.gz") },
    PageFile { path: "/assets/worker-DL4U0pv4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-worker-DL4U0pv4.js.gz") },
    PageFile { path: "/favicon.svg", content_type: "image/svg+xml", gzip: include_bytes!("favicon.svg.gz") },
    PageFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
]
