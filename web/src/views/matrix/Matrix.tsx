export default function Matrix() {
  return <div class="view" />;
}
