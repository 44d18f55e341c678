#include "tuner/html_style.h"

namespace gemm {

const char* const kReportStyle = R"(
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c1f24; --soft: #5b6370; --line: #dfe3e8; --panel: #f5f7f9;
  --tile: #2f6fd0; --stream: #d07a16; --batch: #23906a; --cublas: #7d8590; --alarm: #b3261e; --alarm-page: #fdecea;
  --s0: #c8372d; --s1: #a5abb3; --s2: #a9caee; --s3: #6fa5df; --s4: #3b7bc9; --s5: #1f579f; --s6: #0b2f63; }
@media screen and (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e6e9ed; --soft: #9aa3af; --line: #333a43;
  --panel: #1d2127; --tile: #6aa3f5; --stream: #f0a04b; --batch: #4cc39a; --cublas: #98a1ad; --alarm: #ff8a80;
  --alarm-page: #3a1715; --s0: #ff6b5e; --s1: #777f8a; --s2: #3a5f8c; --s3: #4079b8; --s4: #4d92db; --s5: #86bdf3;
  --s6: #cfe6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1640px; padding: 0 20px 40px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; margin: 24px 0 4px; overflow-wrap: anywhere; } h2 { font-size: 19px; margin: 34px 0 4px; }
h3 { font-size: 15px; margin: 14px 0 4px; }
p { margin: 4px 0 10px; max-width: 90ch; overflow-wrap: anywhere; } .soft, figcaption { color: var(--soft); }
a { color: inherit; text-underline-offset: 2px; } nav a { margin-right: 14px; }
.alarm { position: sticky; top: 0; z-index: 2; margin: 0 -20px; padding: 10px 20px; background: var(--alarm-page);
  color: var(--alarm); border-bottom: 3px solid var(--alarm); font-weight: 700; }
.missing { border-left: 3px solid var(--soft); padding-left: 10px; color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 10px; margin: 16px 0; }
.tiles div { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tiles b { display: block; font-size: 25px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tiles span { display: block; font-size: 13px; } .tiles small { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 8px 0; font-size: 14px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
figure { margin: 10px 0; max-width: 1180px; } .tiles { max-width: 1180px; } figcaption { font-size: 13px; max-width: 100ch; }
svg { display: block; width: 100%; height: auto; background: var(--panel); border-radius: 8px; margin: 6px 0; }
svg text { font-size: 12px; fill: var(--soft); } svg .strong { fill: var(--ink); font-weight: 600;
  paint-order: stroke; stroke: var(--panel); stroke-width: 3px; }
svg .mark { fill: var(--alarm); font-weight: 700; }
svg .grid { stroke: var(--line); } svg .parity { stroke: var(--ink); } svg .mean { stroke: var(--ink); stroke-width: 2; }
svg .roof { stroke: var(--ink); stroke-width: 1.6; } svg .nominal { stroke-dasharray: 6 4; }
svg .curve { fill: none; stroke: var(--tile); stroke-width: 1.6; }
.dot { stroke: var(--panel); stroke-width: 0.6; } .dense { stroke: none; }
.dot:hover { stroke: var(--ink); stroke-width: 2; }
svg .cublas, svg .unknown { fill: var(--panel); stroke: var(--cublas); stroke-width: 1.6; }
.tile { fill: var(--tile); background: var(--tile); } .stream { fill: var(--stream); background: var(--stream); }
.batch { fill: var(--batch); background: var(--batch); }
.speed0 { fill: var(--s0); background: var(--s0); } .speed1 { fill: var(--s1); background: var(--s1); }
.speed2 { fill: var(--s2); background: var(--s2); } .speed3 { fill: var(--s3); background: var(--s3); }
.speed4 { fill: var(--s4); background: var(--s4); } .speed5 { fill: var(--s5); background: var(--s5); }
.speed6 { fill: var(--s6); background: var(--s6); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 4px 0; padding: 0; font-size: 13px; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 50%; margin-right: 6px;
  border: 1.6px solid transparent; background-clip: border-box; }
.legend .cublas, .legend .unknown { border-color: var(--cublas); background: none; }
.scroll { overflow: auto; max-height: 75vh; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 9px; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { position: sticky; top: 0; background: var(--panel); padding: 0; z-index: 1; }
th button { all: unset; box-sizing: border-box; width: 100%; padding: 5px 9px; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid var(--tile); outline-offset: -2px; }
th.n button, td.n { text-align: right; }
th[aria-sort="ascending"] button::after { content: " ▲"; } th[aria-sort="descending"] button::after { content: " ▼"; }
tr:target td { background: var(--panel); font-weight: 600; }
tr[hidden] { display: none; }
code { font: 12px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; }
.filter input { font: inherit; width: 34ch; max-width: 100%; padding: 4px 8px; border: 1px solid var(--line);
  border-radius: 6px; background: var(--page); color: inherit; }
.share { display: inline-block; height: 9px; background: var(--tile); border-radius: 2px; vertical-align: baseline; }
@page { size: landscape; margin: 11mm; }
@media print {
  :root { color-scheme: light; --soft: #444444; --panel: #ffffff; --alarm-page: #ffffff; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .filter, nav { display: none; } .scroll { overflow: visible; max-height: none; } table { font-size: 7pt; }
  th, td, th button { padding: 1px 4px; }
  td code { display: inline-block; min-width: 40ch; font-size: 6pt; white-space: normal; overflow-wrap: anywhere; }
  /* A kernel's id says the rest of its parameters, for which paper has no room. */
  #portfolio-table tr > :nth-child(n+10) { display: none; }
  figure, .tiles, tr, thead { break-inside: avoid; } h2 { break-after: avoid; } .alarm { position: static; }
  thead th { position: static; } }
)";

const char* const kReportScript = R"(
'use strict';
document.querySelectorAll('table.sortable').forEach(function (table) {
  const heads = Array.from(table.tHead.rows[0].cells);
  const words = new Intl.Collator('en', {numeric: true});
  heads.forEach(function (head, column) {
    const numeric = head.classList.contains('n');
    const keyOf = function (row) {
      const text = row.cells[column].textContent;
      return {row: row, key: numeric ? parseFloat(text) : text};
    };
    head.firstChild.addEventListener('click', function () {
      const sign = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
      const keyed = Array.from(table.tBodies[0].rows, keyOf);
      keyed.sort(function (a, b) {
        if (!numeric) return sign * words.compare(a.key, b.key);
        if (isNaN(a.key) || isNaN(b.key)) return isNaN(a.key) - isNaN(b.key);  // rows without a number stay last
        return sign * (a.key - b.key);
      });
      table.tBodies[0].append(...keyed.map(function (entry) { return entry.row; }));
      heads.forEach(function (other) { other.removeAttribute('aria-sort'); });
      head.setAttribute('aria-sort', sign === 1 ? 'ascending' : 'descending');
    });
  });
});
document.querySelectorAll('input[data-filters]').forEach(function (input) {
  const table = document.getElementById(input.dataset.filters);
  const names = Array.from(table.tHead.rows[0].cells, function (head) { return head.textContent; });
  const rows = Array.from(table.tBodies[0].rows, function (row) {
    const fields = Array.from(row.cells, function (cell) { return cell.textContent; });
    return {row: row, fields: fields, text: fields.join(' ').toLowerCase()};
  });
  const testOf = function (word) {
    const parts = /^(.+)([\x3c=>])([0-9.]+)$/.exec(word);
    const column = parts ? names.indexOf(parts[1]) : -1;
    if (column === -1) return function (entry) { return entry.text.includes(word); };
    const bound = parseFloat(parts[3]);
    return function (entry) {
      const value = parseFloat(entry.fields[column]);
      if (parts[2] === '=') return value === bound;
      return parts[2] === '>' ? value > bound : bound > value;
    };
  };
  input.addEventListener('input', function () {
    const tests = input.value.toLowerCase().split(/\s+/).map(testOf);
    let shown = 0;
    rows.forEach(function (entry) {
      const fits = tests.every(function (test) { return test(entry); });
      entry.row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    input.parentElement.querySelector('output').textContent = shown + ' of ' + rows.length + ' rows';
  });
});
)";

}  // namespace gemm
