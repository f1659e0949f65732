// What the pages need beyond HTML and htmx: theme, shortcuts, selection, forms that keep what was typed, times chosen on
// charts, and live parts that stay calm.
"use strict";

const find = (selector, within = document) => within.querySelector(selector);
const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];

// --- Theme: auto, light, dark -----------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];

function setUpTheme() {
  const button = find("#theme");
  const show = () => { find("span", button).textContent = document.documentElement.dataset.theme ?? "auto"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    const current = document.documentElement.dataset.theme ?? "auto";
    const next = THEMES[(THEMES.indexOf(current) + 1) % THEMES.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    localStorage.setItem("switchyard-theme", next);
    show();
  });
  show();
}

// --- Shortcuts --------------------------------------------------------------------------------

const KEYS = "switchyard-keys";

let wentAt = -Infinity; // when `g` was pressed; the next key says where to

const isTyping = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || find("dialog[open]")) return;
  if (localStorage.getItem(KEYS) === "off") return;
  if (event.timeStamp - wentAt < 1500) {
    wentAt = -Infinity;
    const link = findAll("[data-go]").find((each) => each.dataset.go === event.key);
    if (link) { event.preventDefault(); link.click(); return; }
  }
  if (event.key === "g") wentAt = event.timeStamp;
  if (event.key === "/") openSearch(event);
  if (event.key === "f") focusFilter(event);
  if (event.key === "?") find("#shortcuts")?.showModal();
}

function focusFilter(event) {
  const filter = find(".filters input[type=search]");
  if (filter) { event.preventDefault(); filter.focus(); filter.select(); }
}

function setUpShortcuts() {
  document.addEventListener("keydown", onKey);
  const button = find("#shortcuts-open");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => find("#shortcuts").showModal());
  // Whoever speaks to the computer types letters without meaning any key.
  const areOn = find("#keys-on");
  areOn.checked = localStorage.getItem(KEYS) !== "off";
  areOn.addEventListener("change", () => localStorage.setItem(KEYS, areOn.checked ? "on" : "off"));
}

// --- Search over everything: found while typing, chosen by arrow keys -----------------------------

function openSearch(event) {
  const dialog = find("#search");
  if (!dialog) return;
  event.preventDefault();
  const box = find("#search-text") ?? find("input", dialog);
  if (dialog.contains(box)) dialog.showModal();
  box.focus();
  box.select();
}

function onSearchKey(event, box, results) {
  const hits = findAll("[data-hit]", results);
  const at = hits.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && hits.length) {
    event.preventDefault();
    const next = at + step;
    if (next < 0) box.focus();
    else hits[Math.min(next, hits.length - 1)].focus();
  } else if (event.key === "Enter" && event.target === box && hits.length && find(".found", results)?.dataset.for === box.value) {
    event.preventDefault();
    hits[0].click();
  } else if (at >= 0 && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
    box.focus(); // what is typed on goes where it began
  }
}

function setUpSearch() {
  const dialog = find("#search");
  if (!dialog) return;
  find("#search-open").addEventListener("click", openSearch);
  find("[data-close]", dialog).addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => onSearchKey(event, find("input", dialog), find("#search-results")));
  const box = find("#search-text");
  if (box) find("main").addEventListener("keydown", (event) => onSearchKey(event, box, find("#search-page-results")));
}

// --- Where we are: in view, where the entries are a row that scrolls ------------------------------

function showWhereWeAre() {
  const nav = find(".rail nav");
  const here = nav && find("[aria-current]", nav);
  if (here) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}

// --- Back to a list: filtered, sorted and turned over as it was looked at last in this tab ----------

const listKey = (path) => `switchyard-list ${whoIsHere()} ${path}`;

function setUpCrumbs() {
  if (find(".filters")) sessionStorage.setItem(listKey(location.pathname), location.search);
  for (const crumb of findAll(".crumbs a")) crumb.search = sessionStorage.getItem(listKey(crumb.pathname)) ?? crumb.search;
}

// --- Selecting rows ---------------------------------------------------------------------------

function setUpSelection(form) {
  const kind = form.dataset.selection || "letter";
  const boxes = findAll(`input[name=${kind}]:not(:disabled)`, form);
  const all = find("[data-select-all]", form);
  const needing = [all, ...findAll("[data-needs-selection]", form)].map((each) => [each, each.title]);
  const label = find("[data-selected]", form);
  const hint = label.textContent;
  const show = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen > 0 && chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
    label.textContent = chosen ? `${chosen} of ${boxes.length} on this page chosen` : boxes.length ? hint : "None on this page can be chosen";
    for (const [each, title] of needing) {
      const isOff = each === all ? boxes.length === 0 : chosen === 0;
      each.disabled = isOff;
      each.title = isOff ? label.textContent : title;
      // What is off gets no focus: others than who points at it read this.
      if (isOff) each.setAttribute("aria-describedby", label.id);
      else each.removeAttribute("aria-describedby");
    }
  };
  all.hidden = false;
  all.addEventListener("change", () => { boxes.forEach((box) => { box.checked = all.checked; }); show(); });
  form.addEventListener("change", show);
  show();
}

// --- Options of what can be chosen: those of what is not are not sent -------------------------------
// Of very many things they would be more than a web server takes.

function showOptions() {
  for (const options of findAll("[data-while]")) options.disabled = !find(options.dataset.while).checked;
}

function setUpOptions() {
  showOptions();
  document.addEventListener("change", showOptions);
  addEventListener("pageshow", showOptions); // what was typed may be there again by now
}

// --- Copying: what is shown once ------------------------------------------------------------------

function setUpCopying(button) {
  const source = find(button.dataset.copy);
  const label = button.textContent;
  const done = (text) => { button.textContent = text; find("#announcer").textContent = text; setTimeout(() => { button.textContent = label; }, 3000); };
  button.hidden = false;
  button.addEventListener("click", async () => {
    source.focus();
    source.select();
    // Browsers give the clipboard to pages of https and of this machine alone; elsewhere the old way is left.
    try { await navigator.clipboard.writeText(source.value); done("Copied"); }
    catch { done(document.execCommand("copy") ? "Copied" : "Press Ctrl+C"); }
  });
}

// --- What was typed outlives the session -----------------------------------------------------------
// Whoever fills in a form and finds the session over signs in, comes back, and finds it as it was. It is kept in this tab
// until the next page, for the same person alone, and without what is secret. Who had signed in again in another tab is
// led back by the page that refuses the form, to `#typed`.

const TYPED = "switchyard-typed";
const whoIsHere = () => find(".who span")?.textContent ?? "";
const whereTo = (form) => new URL(form.getAttribute("action") ?? "", location).pathname;
const formsHere = () => findAll("form[method=post]:not(.who)");
const isKept = (field) => field.name && field.name !== "csrfmiddlewaretoken" && !["password", "file", "submit"].includes(field.type);

const isChanged = (field) => ["checkbox", "radio"].includes(field.type) ? field.checked !== field.defaultChecked
  : field.options ? [...field.options].some((each) => each.selected !== each.defaultSelected) : field.value !== field.defaultValue;
const isTypedIn = (form) => [...form.elements].some((field) => isKept(field) && field.type !== "hidden" && isChanged(field));

let edited = null; // the form that was last typed in

function keepTyped(form) {
  if (!formsHere().includes(form)) return;
  const fields = [...form.elements].filter(isKept).map((field) => [field.name, field.value, Boolean(field.checked)]);
  const typed = { page: location.pathname, who: whoIsHere(), form: formsHere().indexOf(form), action: whereTo(form), fields };
  try { sessionStorage.setItem(TYPED, JSON.stringify(typed)); }
  catch { sessionStorage.removeItem(TYPED); } // more than a tab may keep
}

function restoreField(form, name, value, checked) {
  const fields = [...form.elements].filter((field) => field.name === name && isKept(field));
  const choice = fields.find((field) => ["checkbox", "radio"].includes(field.type) && field.value === value);
  if (choice) choice.checked = checked;
  else if (fields.length === 1) fields[0].value = value;
}

function restoreTyped() {
  const typed = JSON.parse(sessionStorage.getItem(TYPED) ?? "null");
  sessionStorage.removeItem(TYPED);
  const cameFrom = document.referrer && new URL(document.referrer);
  const hasSignedIn = cameFrom && cameFrom.origin === location.origin && cameFrom.pathname.endsWith("/login/");
  if (!typed || !(hasSignedIn || location.hash === "#typed")) return;
  // A form that was refused is shown where it was sent to: whoever comes back gets the page above, which has it as well.
  if (!typed.page.startsWith(location.pathname) || typed.who !== whoIsHere()) return;
  const form = [formsHere()[typed.form], ...formsHere()].find((each) => each && whereTo(each) === typed.action);
  if (!form) return;
  typed.fields.forEach((field) => restoreField(form, ...field));
  form.dispatchEvent(new Event("change"));
  find("#typed").hidden = false;
}

function setUpTyped() {
  if (!find(".who")) return; // whoever signs in is not back yet
  restoreTyped();
  document.addEventListener("submit", (event) => keepTyped(event.target));
  document.addEventListener("input", (event) => { edited = event.target.form; });
  // A part of the page that finds the session over takes the whole page along; one that finds the page to be of something
  // that has changed does so where nobody has typed anything.
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (event.detail.xhr.getResponseHeader("HX-Redirect")) keepTyped(edited);
    if (event.detail.xhr.getResponseHeader("HX-Refresh") && formsHere().some(isTypedIn)) {
      event.preventDefault();
      find("#moved").hidden = false;
    }
  });
}

// --- Sent once ------------------------------------------------------------------------------------
// Whoever presses twice means it once: two messages would be published, and of two tokens one is never seen.

const SENT_TWICE_MS = 10_000; // after that an answer is not to be hoped for

let sentAt = new WeakMap();

function onSubmit(event) {
  const form = event.target;
  if (form.method !== "post" || form.matches("[hx-post]")) return;
  if (event.timeStamp - (sentAt.get(form) ?? -Infinity) < SENT_TWICE_MS) event.preventDefault();
  else sentAt.set(form, event.timeStamp);
}

function setUpSending() {
  document.addEventListener("submit", onSubmit);
  addEventListener("pageshow", () => { sentAt = new WeakMap(); }); // back at a page that had been sent
}

// --- A time, chosen on a chart --------------------------------------------------------------------
// Dragging over a chart fills in the form that says of what time charts are, and sends it. Whoever does not drag types.

const MINUTE_MS = 60000;
const LEAST_DRAG_PX = 5;

let choosing = null; // the plot that is dragged over, its form, and from where to where, each 0 to 1

function placeOn(plot, event) {
  const { left, width } = plot.getBoundingClientRect();
  return Math.min(Math.max((event.clientX - left) / width, 0), 1);
}

// Whole minutes of UTC, as the form has them. What it was made with is what the charts show, whatever was typed since.
// Charts end with the stretch that is under way: who drags within that means the last minute there is.
function chosenTimes({ form, from, to }) {
  const [begin, end] = [form.elements.from, form.elements.to].map((field) => Date.parse(`${field.defaultValue}Z`) / MINUTE_MS);
  const newest = Math.floor(Date.now() / MINUTE_MS) - 1;
  const first = Math.min(Math.floor(begin + Math.min(from, to) * (end - begin)), newest);
  const last = Math.ceil(begin + Math.max(from, to) * (end - begin));
  return [first, last].map((minute) => new Date(minute * MINUTE_MS).toISOString().slice(0, 16));
}

function showChosen(plot, from, to, told) {
  const area = find(".chosen", plot);
  area.setAttribute("x", Math.min(from, to) * plot.viewBox.baseVal.width);
  area.setAttribute("width", Math.abs(to - from) * plot.viewBox.baseVal.width);
  find(".plot-chosen", plot.parentElement).textContent = told;
}

function beginChoosing(event) {
  const plot = event.target.closest(".plot > svg");
  const form = plot && find(".range-form", plot.closest("section"));
  if (!form || event.button !== 0) return;
  plot.setPointerCapture(event.pointerId);
  const place = placeOn(plot, event);
  choosing = { plot, form, from: place, to: place };
}

function goOnChoosing(event) {
  if (!choosing) return;
  choosing.to = placeOn(choosing.plot, event);
  showChosen(choosing.plot, choosing.from, choosing.to, `${chosenTimes(choosing).join(" to ").replaceAll("T", " ")} UTC`);
}

function stopChoosing() {
  if (choosing) showChosen(choosing.plot, 0, 0, "");
  choosing = null;
}

function endChoosing() {
  const chosen = choosing;
  stopChoosing();
  if (!chosen || Math.abs(chosen.to - chosen.from) * chosen.plot.clientWidth < LEAST_DRAG_PX) return;
  [chosen.form.elements.from.value, chosen.form.elements.to.value] = chosenTimes(chosen);
  chosen.form.requestSubmit();
}

function setUpChoosing() {
  document.addEventListener("pointerdown", beginChoosing);
  document.addEventListener("pointermove", goOnChoosing);
  document.addEventListener("pointerup", endChoosing);
  document.addEventListener("pointercancel", stopChoosing);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") stopChoosing(); });
}

// --- Ages: they go on counting, so that an old figure never looks fresh -------------------------

const firstSeen = new WeakMap();

function ageText(seconds) {
  const size = Math.abs(seconds);
  const [length, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([each]) => size >= each) ?? [1, "s"];
  const text = `${Math.floor(size / length).toLocaleString("en")} ${unit}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

function countAges() {
  const now = Date.now();
  for (const time of findAll("time[data-age]")) {
    if (!firstSeen.has(time)) firstSeen.set(time, now);
    const text = ageText(Number(time.dataset.age) + Math.floor((now - firstSeen.get(time)) / 1000));
    if (time.textContent !== text) time.textContent = text;
  }
}

// --- A hand on the page ---------------------------------------------------------------------------
// Whoever is about to press something presses that, and not what a live part has put in its place. New contents wait while
// pointer or keys are in use, and while they would put something else under a pointer that rests. To keep things where
// they are by scrolling would not do: a short page has nothing to scroll, and rows change their order among themselves.

const REST_MS = 1_000;
const LONGEST_WAIT_MS = 30_000; // so that figures go on, however long the pointer lies there
const SURPRISED_MS = 500; // a click so soon after that was meant for what was there before
const PRESSABLE = "a, button, input, select, summary";

let pointer = null; // where it is, where there is one
let restTimer = null; // while pointer or keys are in use
let forcedAt = -Infinity; // when something was not to wait any longer
const waiting = new Map(); // live parts whose contents wait, and since when

// A link is where it leads, anything else what it does and says.
const whatItIs = (thing) => thing.getAttribute("href") ?? [thing.formAction, thing.name, thing.value, thing.textContent].join(" ");

function whatIsUnder({ x, y }) {
  const at = document.elementFromPoint(x, y);
  const row = at?.closest("tr");
  const thing = at?.closest(PRESSABLE) ?? (row && find(PRESSABLE, row));
  return thing && whatItIs(thing);
}

// The contents are tried out, and taken away before anybody sees them. What is gone for good is not waited for.
function wouldMove(part, contents) {
  const before = pointer && whatIsUnder(pointer);
  if (!before) return false;
  const { scrollX, scrollY } = window;
  const trial = part.cloneNode(false);
  trial.innerHTML = contents;
  part.after(trial);
  part.hidden = true;
  restoreScrolled(trial);
  const after = whatIsUnder(pointer);
  const isElsewhere = () => findAll(PRESSABLE).some((each) => !part.contains(each) && whatItIs(each) === before);
  const moves = after ? after !== before : isElsewhere();
  trial.remove();
  part.hidden = false;
  restoreScrolled(part);
  scrollTo({ left: scrollX, top: scrollY, behavior: "instant" });
  return moves;
}

const isToCome = (part) => part.matches("[hx-trigger^=load]") && !find(PRESSABLE, part);

function mustWait(part, contents) {
  if (isToCome(part)) return false;
  const now = performance.now();
  const since = waiting.get(part) ?? now;
  const disturbs = restTimer !== null || wouldMove(part, contents);
  const waits = disturbs && now - since < LONGEST_WAIT_MS;
  if (waits) waiting.set(part, since);
  else waiting.delete(part);
  if (disturbs && !waits) forcedAt = now;
  return waits;
}

function atRest() {
  restTimer = null;
  if (waiting.size) refreshAll();
}

function noteHand() {
  clearTimeout(restTimer);
  restTimer = setTimeout(atRest, REST_MS);
}

function setUpHand() {
  const on = (names, act) => names.forEach((name) => document.documentElement.addEventListener(name, act, { passive: true }));
  // A pointer that has been lying there since before the page came is told by `pointerover` alone.
  on(["pointerover", "pointermove", "pointerdown"], (event) => { pointer = { x: event.clientX, y: event.clientY }; });
  on(["pointerleave"], () => { pointer = null; });
  on(["pointermove", "pointerdown", "pointerleave", "wheel", "keydown"], noteHand);
  document.addEventListener("click", (event) => {
    const isByPointer = event.detail > 0;
    if (isByPointer && performance.now() - forcedAt < SURPRISED_MS) { event.preventDefault(); event.stopImmediatePropagation(); }
  }, { capture: true });
}

// --- Live parts ---------------------------------------------------------------------------------
// They are replaced every few seconds. Nobody looking at them should notice anything but new figures: what was
// scrolled, opened or focused stays so, what is being selected stays selected, and a hidden tab asks for nothing.

const RETRY_MS = 5_000;
const NO_ANSWER = "This page can't reach the server, and keeps trying.";
const FAILED = "The server could not renew this page, and is asked again.";
const REFUSED = { 403: "You may not see this any more.", 404: "What this page shows is gone, or not for you to see." };

let answeredAt = Date.now();
let announced = null; // what was said of each, without its figures

const isLive = (part) => part.matches("[data-live]");

// Text, rows, or what is being typed: whoever is about to do something with it keeps it.
function isSelectingIn(part) {
  const selection = getSelection();
  const holds = !selection.isCollapsed && part.contains(selection.anchorNode);
  const isUsed = part.contains(choosing?.plot ?? null) || find("input[type=checkbox]:checked", part) || (part.contains(document.activeElement) && isTyping(document.activeElement));
  return holds || Boolean(isUsed);
}

const scrolled = new Map();
const opened = new Map();
const keepScrolled = (part) => {
  findAll("[id$=-scroll]", part).forEach((each) => scrolled.set(each.id, [each.scrollLeft, each.scrollTop]));
  findAll("details[id]", part).forEach((each) => opened.set(each.id, each.open));
};
const restoreScrolled = (part) => {
  findAll("details[id]", part).forEach((each) => { if (opened.has(each.id)) each.open = opened.get(each.id); });
  findAll("[id$=-scroll]", part).forEach((each) => {
    if (scrolled.has(each.id)) [each.scrollLeft, each.scrollTop] = scrolled.get(each.id);
  });
};

// By what it is, and which of those that are alike: its place may be another's now. What has an id, htmx has focused already.
const FOCUSABLE = `${PRESSABLE}, [tabindex]`;
const alike = (part, what) => findAll(FOCUSABLE, part).filter((each) => whatItIs(each) === what);
let focused = null;
const keepFocus = (part) => {
  const at = document.activeElement;
  focused = part.contains(at) ? { what: whatItIs(at), number: alike(part, whatItIs(at)).indexOf(at) } : null;
};
const restoreFocus = (part) => {
  if (focused === null || document.activeElement !== document.body) return;
  const found = alike(part, focused.what);
  (found[focused.number] ?? found[0])?.focus({ preventScroll: true });
};

const refreshAll = () => findAll("[data-live][hx-trigger]").forEach((part) => htmx.trigger(part, "wake"));

// Screen readers hear once of what is new, and nothing of figures that change.
function announce() {
  const lines = findAll("[data-announce]").flatMap((each) => each.matches(":has(li)") ? findAll("li", each) : [each]);
  const texts = lines.map((each) => each.textContent.replace(/\s+/g, " ").trim());
  const unfigured = texts.map((text) => text.replace(/[\d.,:]+( ?(ms|s|min|h|d)\b)*( ago)?/g, ""));
  const news = announced && texts.filter((_, index) => !announced.has(unfigured[index]));
  if (news?.length) find("#announcer").textContent = news.join(" ");
  announced = new Set(unfigured);
}

function showConnection() {
  answeredAt = Date.now();
  find("#offline").hidden = true;
}

function showFailure(event) {
  const { status } = event.detail.xhr;
  const banner = find("#offline");
  const told = find("[role=alert]", banner);
  const text = REFUSED[status] ?? (status ? FAILED : NO_ANSWER);
  if (told.textContent !== text) told.textContent = text; // it is read aloud
  find("[data-since]", banner).textContent = ageText(Math.floor((Date.now() - answeredAt) / 1000));
  banner.hidden = false;
  if (!REFUSED[status] && isToCome(event.target)) setTimeout(() => htmx.trigger(event.target, "again"), RETRY_MS);
}

function onAnswer(event) {
  const part = event.target;
  const isAskedFor = event.detail.requestConfig.triggeringEvent?.isTrusted; // somebody pressed something, and waits for it
  keepScrolled(part);
  keepFocus(part);
  if (!event.detail.shouldSwap || isAskedFor) return;
  if (!isSelectingIn(part) && !mustWait(part, event.detail.serverResponse)) return;
  event.detail.shouldSwap = false;
  find("#offline").hidden = true;
}

function onNewContents(event) {
  const part = event.target;
  restoreScrolled(part);
  restoreFocus(part);
  findAll("[data-selection]", part).forEach(setUpSelection);
  countAges();
  announce();
  showConnection();
}

function setUpLive() {
  const on = (name, act, isMeant = isLive) => document.addEventListener(name, (event) => { if (isMeant(event.target)) act(event); });
  // What has never come is asked for in a hidden tab as well: a page that is opened there is whole.
  const mayWait = (part) => (document.hidden && !isToCome(part)) || isSelectingIn(part);
  on("htmx:beforeRequest", (event) => { if (mayWait(event.target)) event.preventDefault(); });
  on("htmx:beforeSwap", onAnswer);
  on("htmx:afterSwap", onNewContents);
  for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) on(failure, showFailure, (part) => isLive(part) || isToCome(part));
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshAll(); });
  announce();
}

setUpTheme();
setUpShortcuts();
setUpSearch();
showWhereWeAre();
setUpHand();
setUpLive();
findAll("[data-selection]").forEach(setUpSelection);
findAll("[data-copy]").forEach(setUpCopying);
setUpOptions();
setUpTyped();
setUpSending();
setUpChoosing();
setUpCrumbs();
countAges();
setInterval(countAges, 1000);
