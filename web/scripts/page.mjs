// The built page: where it is, and the media types of its files.
import { fileURLToPath } from "node:url";

export const PAGE = fileURLToPath(new URL("../dist", import.meta.url));

export const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
