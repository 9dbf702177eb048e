
// --- the live page: parts of it come as events, already HTML
(function live() {
  const AGAIN = 2000;  // milliseconds
  const BOUND = "figure.curves, table.sortable";
  const link = document.getElementById("live-link");
  const run = new URLSearchParams(location.search).get("run");
  const say = (text) => { if (link.textContent !== text) link.textContent = text; };

  // What can have the focus stays in the page, with what was chosen there; what it shows is replaced.
  function put(part, html) {
    const come = document.createElement("template");
    come.innerHTML = html;
    const [olds, news] = [[...part.children], [...come.content.children]];
    const keys = (element) => [...element.querySelectorAll(".key")].map((key) => key.textContent).join("\n");
    const alike = (old, i) => old.tagName === news[i].tagName && keys(old) === keys(news[i]);
    if (olds.length !== news.length || !olds.every(alike)) {
      part.replaceChildren(come.content);
      part.querySelectorAll("figure.curves").forEach(bindCurves);
      part.querySelectorAll("table.sortable").forEach(bindTable);
      return;
    }
    olds.forEach((old, i) => {
      const [bound, now] = [old, news[i]].map((element) => (element.matches(BOUND) ? element : element.querySelector(BOUND)));
      if (!bound) { old.replaceWith(news[i]); return; }
      dress(old, news[i]);
      dress(bound, now);
      renewals.get(bound)(now);
    });
  }

  function follow() {
    const events = new EventSource(run === null ? "/events" : `/events?run=${encodeURIComponent(run)}`);
    events.addEventListener("open", () => say("following"));
    events.addEventListener("error", () => {
      say("not connected; what is shown is the last that was heard");
      if (events.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN);  // a browser tries again unless an error answers it
    });
    events.addEventListener("message", (event) => {
      for (const [place, html] of Object.entries(JSON.parse(event.data))) put(document.getElementById(`live-${place}`), html);
    });
  }
  follow();
})();
