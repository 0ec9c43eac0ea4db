// What a page must have for those who read it by keyboard, by ear or with weak eyes; every line found is one that lacks
// it. The page is `page`, a document that is displayed. A part of what axe-core checks, which found nothing else here.
const found = [];
const lack = (element, text) => found.push(`${text}: ${element.outerHTML.slice(0, 120)}`);
const every = (selector) => [...page.querySelectorAll(selector)];
const view = page.defaultView;
const displayed = (element) => element.checkVisibility();

// Names.
if (!page.documentElement.lang) found.push("the page has no language");
if (!page.title.trim()) found.push("the page has no title");
for (const one of every("img")) if (!one.alt) lack(one, "an image without a text");
for (const one of every("svg[role=img]")) if (!one.getAttribute("aria-label")) lack(one, "a drawing without a name");
for (const one of every("button, input, a[href], summary")) {
  const named = one.textContent.trim() || one.getAttribute("aria-label") || one.closest("label")?.textContent.trim();
  if (!named) lack(one, "a control without a name");
}
for (const one of every("fieldset")) if (!one.querySelector("legend")) lack(one, "a group of controls without a name");
const names = every("nav, [role=region], section[aria-label]").map((one) => one.getAttribute("aria-label"));
for (const name of names) if (!name) found.push("a landmark without a name");
for (const name of new Set(names.filter((name, place) => names.indexOf(name) !== place))) found.push(`two landmarks: ${name}`);
for (const one of every("th")) if (!one.scope) lack(one, "a heading of a table without a scope");

// Structure.
if (every("h1").length !== 1 || every("main").length !== 1) found.push("a page has one h1 and one main");
let level = 1;
for (const one of every("h1, h2, h3, h4, h5, h6")) {
  const own = Number(one.tagName[1]);
  if (own > level + 1) lack(one, "a heading that skips a level");
  level = own;
}
const ids = every("[id]").map((one) => one.id);
if (new Set(ids).size !== ids.length) found.push("an id that two elements have");
for (const one of every('a[href^="#"]')) if (!page.getElementById(one.hash.slice(1))) lack(one, "a link that leads nowhere");
if (every('nav a[href^="#"]').length < 3) found.push("a page has a navigation");

// Keyboard: what scrolls can be focused, and what is focused shows it.
for (const one of every("*")) {
  if (!displayed(one) || one === page.documentElement || one === page.body) continue;
  const scrolls = one.scrollWidth > one.clientWidth + 1 && ["auto", "scroll"].includes(view.getComputedStyle(one).overflowX);
  if (scrolls && one.tabIndex < 0) lack(one, "a part that scrolls and cannot be focused");
}

// Contrast of every text with what is behind it, 4.5 at least, and 3 where it is large.
const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
const over = ([r, g, b, a = 1], below) => [r, g, b].map((value, place) => a * value + (1 - a) * below[place]);
const luminance = (colour) => {
  const [r, g, b] = colour.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  const behind = element.parentElement ? ground(element.parentElement) : [255, 255, 255];
  return over(channels(view.getComputedStyle(element).backgroundColor), behind);
};
const texts = page.createTreeWalker(page.body, view.NodeFilter.SHOW_TEXT);
let judged = 0;
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.textContent.trim() || element.closest("script, style, svg") || !displayed(element)) continue;
  const style = view.getComputedStyle(element);
  const back = ground(element);
  const opacity = Number(style.opacity);
  const ink = over([...channels(style.color).slice(0, 3), (channels(style.color)[3] ?? 1) * opacity], back);
  const [low, high] = [luminance(ink), luminance(back)].sort((a, b) => a - b);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  judged += 1;
  if ((high + 0.05) / (low + 0.05) < (large ? 3 : 4.5)) lack(element, `contrast ${((high + 0.05) / (low + 0.05)).toFixed(2)}`);
}
if (judged < 20) found.push(`only ${judged} texts were seen`);
return [...new Set(found)];
