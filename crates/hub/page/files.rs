// Written by `npm run build` in web/. Digest of the sources: a437b5a7ae6fe3b8d84e071148766275c0122fd4d00093d578d78502406fce55
&[
    PageFile { path: "/assets/AppPage-B1oO7S3z.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-AppPage-B1oO7S3z.js.gz") },
    PageFile { path: "/assets/Events-DdBXmUix.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Events-DdBXmUix.js.gz") },
    PageFile { path: "/assets/History-CPq7XwWM.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-History-CPq7XwWM.js.gz") },
    PageFile { path: "/assets/InClusters-CpWqb9du.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-InClusters-CpWqb9du.js.gz") },
    PageFile { path: "/assets/Logs-BfMT8WVt.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Logs-BfMT8WVt.js.gz") },
    PageFile { path: "/assets/Matrix-BHj9fHF9.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Matrix-BHj9fHF9.js.gz") },
    PageFile { path: "/assets/Objects-DIW-ZjyX.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Objects-DIW-ZjyX.js.gz") },
    PageFile { path: "/assets/Why-C7NdyeVX.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-Why-C7NdyeVX.js.gz") },
    PageFile { path: "/assets/index-Ck6RoDbR.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-index-Ck6RoDbR.js.gz") },
    PageFile { path: "/assets/style-DnkuX4La.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("assets-style-DnkuX4La.css.gz") },
    PageFile { path: "/assets/worker-DL4U0pv4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("assets-worker-DL4U0pv4.js.gz") },
    PageFile { path: "/favicon.svg", content_type: "image/svg+xml", gzip: include_bytes!("favicon.svg.gz") },
    PageFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
]
