// Line icons of the frame, 16 px, drawn by the current colour.
const PATHS = {
  attention: "M8 1.8 14.4 13.2H1.6zM8 6.2v3.4M8 11.4v.2",
  apps: "M2.2 2.2h4.6v4.6H2.2zM9.2 2.2h4.6v4.6H9.2zM2.2 9.2h4.6v4.6H2.2zM9.2 9.2h4.6v4.6H9.2z",
  clusters: "M8 1.6 13.6 4.8v6.4L8 14.4 2.4 11.2V4.8zM8 8l5.6-3.2M8 8v6.4M8 8 2.4 4.8",
  matrix: "M2 2h12v12H2zM6 2v12M10 2v12M2 6h12M2 10h12",
  search: "M7 2.2a4.8 4.8 0 1 1 0 9.6 4.8 4.8 0 0 1 0-9.6M10.6 10.6 14 14",
  time: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8M8 4.4V8l2.6 1.8",
  copy: "M5.4 5.4h8v8h-8zM10.6 5.4V2.6h-8v8h2.8",
  check: "m3 8.4 3.2 3.2L13 4.8",
  close: "m3.8 3.8 8.4 8.4m0-8.4-8.4 8.4",
  full: "M9.4 2.4h4.2v4.2M13.4 2.6 9 7M6.6 13.6H2.4V9.4M2.6 13.4 7 9",
  chevron: "m6 3.6 4.4 4.4L6 12.4",
  down: "m3.6 6 4.4 4.4L12.4 6",
  theme: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  keys: "M1.6 4h12.8v8H1.6zM4.2 6.6h.1M7 6.6h.1M9.8 6.6h.1M4.8 9.4h6.4",
  fold: "M2.4 2.4h11.2v11.2H2.4zM6 2.4v11.2",
  refresh: "M13.4 6.2A5.6 5.6 0 0 0 3 5M2.6 9.8A5.6 5.6 0 0 0 13 11M13.4 2.4v3.8H9.6M2.6 13.6V9.8h3.8",
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = (props: { name: IconName; size?: number }) => (
  <svg class="icon" viewBox="0 0 16 16" width={props.size ?? 16} height={props.size ?? 16} aria-hidden="true">
    <path d={PATHS[props.name]} />
  </svg>
);
