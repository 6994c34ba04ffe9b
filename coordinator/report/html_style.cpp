#include "coordinator/report/html_parts.hpp"

namespace leafcutter::coordinator {

std::string_view html_style() {
  return R"css(
:root {
  color-scheme: light dark;
  --paper: #f6f7f5; --card: #ffffff; --ink: #1c2321; --soft: #5d6965; --line: #dde2df; --faint: #eef1ef;
  --code: #f1f4f2;
  --pass: #1b7f4d; --fail: #c22f3c; --open: #a46a00; --infra: #6a55c2; --accent: #1d6fa5;
  --pass-soft: #e3f3ea; --fail-soft: #fbe9ea; --open-soft: #fbf1dc; --infra-soft: #edeafa; --accent-soft: #e4f0f8;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12171a; --card: #1a2125; --ink: #e4eae7; --soft: #98a5a0; --line: #2d373b; --faint: #20292d;
  --code: #222c30;
    --pass: #4cc38a; --fail: #ff7b83; --open: #e3ad4d; --infra: #a99af5; --accent: #6bb6e6;
    --pass-soft: #16332a; --fail-soft: #3d1f24; --open-soft: #3a2e15; --infra-soft: #2a2547; --accent-soft: #17303f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 var(--sans); }
.wrap { max-width: 1240px; margin: 0 auto; padding: 0 24px; }
code, pre { font-family: var(--mono); font-size: 0.9em; }
h1 { margin: 0; font-size: 30px; line-height: 1.2; letter-spacing: -0.01em; }
h1 small { font-size: 16px; font-weight: 500; color: var(--soft); }
h2 { margin: 0 0 12px; font-size: 19px; }
h3 { margin: 2px 0 6px; font-size: 21px; line-height: 1.3; letter-spacing: -0.005em; }
h4 { margin: 18px 0 6px; font-size: 12px; letter-spacing: 0.07em; text-transform: uppercase; color: var(--soft); }
p { margin: 6px 0; }
section { margin: 28px 0; }
.hero { border-top: 6px solid var(--soft); background: var(--card); border-bottom: 1px solid var(--line);
  padding: 22px 0 20px; }
.hero.pass { border-top-color: var(--pass); }
.hero.fail { border-top-color: var(--fail); }
.hero.open { border-top-color: var(--open); }
.brand { margin: 0 0 8px; font-size: 12px; letter-spacing: 0.12em; text-transform: uppercase; color: var(--soft); }
.verdict { font-size: 18px; }
.verdict b { margin-right: 8px; padding: 2px 10px; border-radius: 5px; color: var(--card); background: var(--soft);
  font-size: 14px;
  letter-spacing: 0.05em; vertical-align: 1px; }
.hero.pass b { background: var(--pass); }
.hero.fail b { background: var(--fail); }
.hero.open b { background: var(--open); }
.about { color: var(--soft); max-width: 80ch; }
.facts { display: flex; flex-wrap: wrap; gap: 8px 32px; margin: 16px 0 0; }
.fact dt { font-size: 12px; color: var(--soft); }
.fact dd { margin: 0; font-size: 17px; font-variant-numeric: tabular-nums; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px 24px; }
.finding { border-left: 5px solid var(--fail); margin: 0 0 22px; }
.eyebrow { margin: 0; font-size: 12.5px; color: var(--soft); }
.message { color: var(--ink); max-width: 95ch; overflow-wrap: anywhere; }
.badges { display: flex; flex-wrap: wrap; gap: 6px; margin: 10px 0 0; }
.badge { display: inline-block; padding: 1px 9px; border-radius: 99px; font-size: 12.5px; background: var(--faint);
  color: var(--soft); white-space: nowrap; }
.badge.pass { background: var(--pass-soft); color: var(--pass); }
.badge.fail { background: var(--fail-soft); color: var(--fail); }
.badge.open { background: var(--open-soft); color: var(--open); }
.badge.infra { background: var(--infra-soft); color: var(--infra); }
.plan { margin: 0; padding: 0; list-style: none; counter-reset: fault; }
.plan li { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; padding: 8px 12px; margin: 0 0 6px;
  border-radius: 7px; background: var(--fail-soft);
  counter-increment: fault; }
.plan li::before { content: counter(fault); flex: none; width: 22px; height: 22px; border-radius: 50%;
  background: var(--fail); color: var(--card);
  font-size: 12.5px; font-weight: 700; line-height: 22px; text-align: center; }
.plan .kind { color: var(--fail); } .plan .kind i { font-weight: 400; }
.plan .site { display: inline-flex; flex-wrap: wrap; font-family: var(--mono); font-size: 13px; }
.plan .site span + span::before { content: "\203A"; margin: 0 7px; color: var(--soft); }
.plan .nth { color: var(--soft); font-size: 13px; margin-left: auto; }
.command { display: inline-flex; align-items: stretch; max-width: 100%; border: 1px solid var(--line);
  border-radius: 7px; overflow: hidden; background: var(--code); }
.command code { padding: 5px 12px; overflow-x: auto; white-space: nowrap; }
button { font: inherit; font-size: 13px; color: var(--ink); background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; padding: 3px 12px; cursor: pointer; }
button:hover { background: var(--faint); }
button:focus-visible, input:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.copy { border: 0; border-left: 1px solid var(--line); border-radius: 0; min-width: 66px; }
.copy.done { color: var(--pass); }
.exemplars { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; color: var(--soft); }
details { margin-top: 16px; } summary { cursor: pointer; color: var(--accent); }
.explanation { margin: 10px 0 0; padding: 14px 16px; background: var(--code); border-radius: 8px; overflow-x: auto;
  line-height: 1.45; font-size: 12.5px; }
.explanation .head { font-weight: 700; }
.explanation .struck { color: var(--fail); font-weight: 700; }
.explanation .proof { color: var(--open); font-weight: 700; }
.bar { display: flex; height: 12px; gap: 2px; border-radius: 6px; overflow: hidden; margin: 0 0 14px;
  background: var(--faint); }
.bar span { min-width: 4px; }
.bar .pass { background: var(--pass); }
.bar .fail { background: var(--fail); }
.bar .open { background: var(--open); }
.bar .infra { background: var(--infra); }
table { width: 100%; border-collapse: collapse; } table.narrow { width: auto; min-width: 280px; }
th { text-align: left; font-size: 12px; font-weight: 600; color: var(--soft); }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
td i { color: var(--soft); }
td code { white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.meter { display: grid; grid-template-columns: 120px minmax(120px, 1fr) 210px; gap: 14px; align-items: center;
  margin: 6px 0; font-size: 13.5px; }
.track { position: relative; height: 10px; border-radius: 5px; background: var(--faint); overflow: hidden; }
.track i { position: absolute; inset: 0 auto 0 0; }
.track .run { background: var(--accent); opacity: 0.35; }
.track .fired { background: var(--accent); }
.line { margin-top: 12px; color: var(--soft); max-width: 110ch; } .hint { color: var(--soft); }
.lanes:not(:empty) { margin: 18px 0 0; border: 1px solid var(--line); border-radius: 9px; overflow: hidden; }
.tools { display: flex; flex-wrap: wrap; gap: 10px 18px; align-items: center; padding: 9px 14px;
  background: var(--faint); border-bottom: 1px solid var(--line); font-size: 13.5px; }
.tools b { font-size: 13.5px; }
.tools .legend { margin-left: auto; display: flex; flex-wrap: wrap; gap: 4px 14px; color: var(--soft);
  font-size: 12.5px; }
.legend span::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 2px;
  margin-right: 6px; background: var(--soft); }
.legend .l-fault::before { background: var(--fail); }
.legend .l-proof::before { background: var(--open); }
.legend .l-parts::before { background: var(--accent); }
.segments { display: inline-flex; }
.segments button { border-radius: 0; margin-left: -1px; }
.segments button:first-child { border-radius: 6px 0 0 6px; }
.segments button:last-child { border-radius: 0 6px 6px 0; }
button[aria-pressed="true"] { background: var(--accent); border-color: var(--accent); color: var(--card); }
.views { display: grid; grid-template-columns: 1fr; }
.views.both { grid-template-columns: 1fr 1fr; }
.views.both > div + div { border-left: 1px solid var(--line); }
.view { min-width: 0; max-height: 640px; overflow: auto; } .view .missing { padding: 20px; color: var(--soft); }
.view h5 { margin: 0; padding: 6px 14px; font-size: 12.5px; color: var(--soft);
  border-bottom: 1px solid var(--line); }
.head-row, .row { display: grid; grid-template-columns: 74px auto minmax(260px, 1fr); align-items: center;
  min-width: max-content; }
.head-row { position: sticky; top: 0; z-index: 2; background: var(--card); border-bottom: 1px solid var(--line);
  font-size: 12.5px; font-weight: 600; }
.head-row .names { display: flex; }
.head-row .names span { text-align: center; padding: 6px 3px; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.row { cursor: pointer; border-left: 3px solid transparent; } .row:hover { background: var(--faint); }
.row time { text-align: right; padding-right: 10px; font: 12px var(--mono); color: var(--soft); white-space: nowrap; }
.row .text { padding: 0 14px 0 8px; font-size: 13px; white-space: nowrap; }
.row.quiet .text { color: var(--soft); }
.row.key .text { font-weight: 600; }
.row .lane { color: var(--soft); font-weight: 400; margin-right: 10px; }
.views.both .lane { display: none; }
.row.fault { background: var(--fail-soft); border-left-color: var(--fail); }
.row.fault { min-width: min-content; overflow: hidden; }
.row.fault svg { overflow: visible; }
.row.fault .text { color: var(--fail); font-weight: 700; white-space: normal; overflow-wrap: anywhere; padding-block: 4px; }
.row.evidence { background: var(--open-soft); border-left-color: var(--open); }
.row.parts { border-left-color: var(--accent); }
.tag { margin-left: 10px; padding: 0 7px; border-radius: 99px; font-size: 11.5px; font-weight: 500;
  background: var(--accent-soft); color: var(--accent); }
.evidence .tag { background: var(--card); color: var(--open); }
.row svg { display: block; }
.life { stroke: var(--line); stroke-width: 2; }
.life.down { stroke: var(--fail); stroke-dasharray: 2 4; }
.life.unborn { stroke: none; }
.arrow { stroke: var(--ink); stroke-width: 1.5; fill: none; }
.arrow.dashed { stroke-dasharray: 5 3; }
.arrow.thin { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 1 3; }
.tip { fill: var(--ink); }
.dot { fill: var(--card); stroke: var(--ink); stroke-width: 1.6; }
.dot.small { fill: var(--soft); stroke: none; }
.dot.good { fill: var(--pass); stroke: none; }
.lost { stroke: var(--fail); stroke-width: 2.2; }
.bolt { fill: var(--fail); stroke: var(--card); stroke-width: 1; }
.strike { stroke: var(--fail); stroke-width: 2; stroke-dasharray: 3 3; }
.quiet .arrow { stroke: var(--soft); } .quiet .tip { fill: var(--soft); }
.gap { padding: 1px 0 1px 86px; font-size: 12px; color: var(--soft); background: var(--faint); }
.detail { margin: 0; padding: 8px 16px 10px 86px; font-size: 12px; background: var(--code); white-space: pre-wrap;
  overflow-wrap: anywhere; }
.filters { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 0 12px; }
.filters input { flex: 1 1 260px; font: inherit; padding: 5px 11px; border: 1px solid var(--line);
  border-radius: 6px; background: var(--paper); color: var(--ink); }
.list table { font-size: 13.5px; }
.list td:nth-child(4) { overflow-wrap: anywhere; }
.list .why { display: block; color: var(--soft); }
.list .more { margin-top: 10px; }
footer { margin: 30px 0 50px; color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
@media (max-width: 900px) {
  .views.both { grid-template-columns: 1fr; }
  .wrap { padding: 0 14px; }
  .card { padding: 16px; }
  .meter { grid-template-columns: 1fr; gap: 4px; }
  .plan .nth { margin-left: 0; }
}
@media print { .view { max-height: none; } .copy, .tools { display: none; } }
)css";
}

}  // namespace leafcutter::coordinator
