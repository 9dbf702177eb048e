
// --- the live page: parts of it come as events, already HTML
(function live() {
  const link = document.getElementById("live-link");
  const run = new URLSearchParams(location.search).get("run");
  const events = new EventSource(run === null ? "/events" : `/events?run=${encodeURIComponent(run)}`);
  events.addEventListener("open", () => { link.textContent = "following"; });
  events.addEventListener("error", () => { link.textContent = "not connected; what is shown is the last that was heard"; });
  events.addEventListener("message", (event) => {
    for (const [place, html] of Object.entries(JSON.parse(event.data))) {
      const part = document.getElementById(`live-${place}`);
      part.innerHTML = html;
      part.querySelectorAll("figure.curves").forEach(bindCurves);
    }
  });
})();
