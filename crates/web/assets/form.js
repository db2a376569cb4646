// The settings: the form beside the diagram.

import { h } from './dom.js';
import { t } from './i18n.js';

const CHOICES = {
  ids: ['asc', 'desc', 'random'], initiators: ['all', '1x', '0'], load: ['high', 'low'],
  delay: ['constant', 'uniform:0.5..1.5', 'exponential', 'log-normal'], think: ['5', 'uniform:0..9', 'exponential:5', 'pareto:5,1.5', 'arrivals:5', 'bursts:5,4'],
  hold: ['1', '2', 'exponential:1'], 'detect-after': ['3', 'never'],
};
const NUMBERS = new Set(['nodes', 'entries', 'app-messages', 'skew', 'bandwidth', 'loss', 'duplicate', 'seed', 'warm-up', 'time-limit', 'step-limit']);
/** @type {[string, string[]][]} */
const GROUPS = [
  ['group', ['ids', 'initiators', 'down']],
  ['workload', ['entries', 'requests', 'script', 'load', 'think', 'hold', 'skew', 'app-messages']],
  ['network', ['delay', 'fifo', 'service', 'bandwidth', 'loss', 'duplicate', 'detect-after']],
  ['limits', ['warm-up', 'time-limit', 'step-limit']],
];
/** What an election does not ask. */
const LOCK_ONLY = new Set(['hold', 'warm-up']);

/**
 * @param {any} app the workbench: catalog, settings, mode
 * @param {(change: (settings: any) => void, algorithm?: boolean) => void} change
 * @returns {HTMLElement[]}
 */
export function form(app, change) {
  const { catalog, settings, mode } = app, sheet = app.sheet();
  const problems = [...new Set(catalog.algorithms.map((a) => a.problem))];
  const options = (list, chosen) => list.map(([value, text]) => h('option', { value, textContent: text, selected: value === chosen }));
  const parts = [
    field('problem', h('select', {
      onchange: (e) => change((w) => { w.scenario.algorithm = catalog.algorithms.find((a) => a.problem === e.target.value).name; }, true),
    }, ...options(problems.map((p) => [p, p]), sheet.problem))),
    field('algorithm', h('select', {
      onchange: (e) => change((w) => { w.scenario.algorithm = e.target.value; }, true),
    }, ...options(catalog.algorithms.filter((a) => a.problem === sheet.problem).map((a) => [a.name, a.title]), sheet.name))),
  ];
  if (mode === 'race') parts.push(racers(app, change));
  parts.push(text('nodes', settings, change, { type: 'number', min: 1, max: catalog.limits.nodes }));
  parts.push(text('topology', settings, change, { placeholder: sheet.topology || '' }, catalog.topologies.map(([kind]) => kind.replace(/:.*/, '')).filter((k, i, l) => l.indexOf(k) === i)));
  if (mode !== 'race') {
    for (const it of sheet.switches) parts.push(choice(it, settings, change));
    if (sheet.mistakes.length) {
      parts.push(field('mistake', h('select', {
        onchange: (e) => change((w) => { set(w.scenario, 'mistake', e.target.value); }),
      }, ...options([['', t('none')], ...sheet.mistakes.map((m) => [m.name, m.name])], settings.scenario.mistake || ''))));
    }
  }
  parts.push(text('seed', settings, change, { type: 'number', min: 0, placeholder: '1' }));
  for (const [name, fields] of GROUPS) {
    const open = fields.some((key) => settings.scenario[key] !== undefined) || app.open.has(name);
    const shown = mode === 'check' ? fields.filter((key) => ['ids', 'initiators', 'down', 'entries', 'requests', 'fifo'].includes(key)) : fields;
    if (!shown.length) continue;
    parts.push(h('details', { open, ontoggle: (e) => { if (e.target.open) app.open.add(name); else app.open.delete(name); } },
      h('summary', {}, t(name)),
      ...shown.filter((key) => sheet.holds || !LOCK_ONLY.has(key)).map((key) => (key === 'fifo' ? fifo(settings, change) : text(key, settings, change, NUMBERS.has(key) ? { type: 'number', min: 0, step: 'any' } : {}, CHOICES[key])))));
  }
  if (mode === 'check') parts.push(budgets(settings, change));
  return parts;
}

function field(key, input) {
  const id = 'setting-' + key;
  input.id = id;
  return h('div', { class: 'field' }, h('label', { for: id }, t(key === 'down' ? 'down-field' : key)), input);
}

function set(object, key, value) {
  if (value === '' || value === undefined || Number.isNaN(value)) delete object[key]; else object[key] = value;
}

function text(key, settings, change, props = {}, choices) {
  const list = choices ? h('datalist', { id: 'list-' + key }, ...choices.map((value) => h('option', { value }))) : null;
  const input = h('input', {
    type: 'text', value: settings.scenario[key] ?? '', placeholder: t('default'), autocomplete: 'off', spellcheck: false, ...props, ...(list ? { list: list.id } : {}),
    onchange: (e) => change((w) => set(w.scenario, key, NUMBERS.has(key) && e.target.value !== '' ? Number(e.target.value) : e.target.value.trim())),
  });
  const box = field(key, input);
  if (list) box.append(list);
  return box;
}

function fifo(settings, change) {
  return field('fifo', h('input', {
    type: 'checkbox', checked: settings.scenario.fifo !== false, onchange: (e) => change((w) => set(w.scenario, 'fifo', e.target.checked ? undefined : false)),
  }));
}

function choice(it, settings, change) {
  const chosen = ((settings.scenario.set || []).find((word) => word.startsWith(it.name + '=')) || '').slice(it.name.length + 1);
  const put = (value) => change((w) => {
    const rest = (w.scenario.set || []).filter((word) => !word.startsWith(it.name + '='));
    if (value && value !== it.values[0]) rest.push(it.name + '=' + value);
    set(w.scenario, 'set', rest.length ? rest : undefined);
  });
  const free = it.values.some((value) => value.startsWith('<'));
  const id = 'setting-set-' + it.name;
  const input = free ? h('input', { id, type: 'text', value: chosen, placeholder: it.values[0], title: it.what, onchange: (e) => put(e.target.value.trim()) })
    : h('select', { id, title: it.what, onchange: (e) => put(e.target.value) }, ...it.values.map((value) => h('option', { value, textContent: value, selected: value === (chosen || it.values[0]) })));
  return h('div', { class: 'field' }, h('label', { for: id, title: it.what }, it.name), input);
}

function racers(app, change) {
  const { catalog, settings } = app, sheet = app.sheet();
  const boxes = catalog.algorithms.filter((a) => a.problem === sheet.problem).map((a) => {
    const on = settings.racers.includes(a.name);
    return h('label', { class: 'row' }, h('input', {
      type: 'checkbox', checked: on, value: a.name, disabled: !on && settings.racers.length >= catalog.limits.racers,
      onchange: (e) => change((w) => {
        w.racers = e.target.checked ? [...w.racers, a.name] : w.racers.filter((name) => name !== a.name);
      }),
    }), a.title);
  });
  return h('details', { open: true }, h('summary', {}, t('racers')), ...boxes);
}

function budgets(settings, change) {
  const number = (key) => field('b-' + key, h('input', { type: 'number', min: 0, max: 9, value: settings.budgets[key] ?? 0, onchange: (e) => change((w) => set(w.budgets, key, Number(e.target.value) || undefined)) }));
  return h('details', { open: true }, h('summary', {}, t('budgets')), ...['crash', 'restart', 'loss', 'duplicate'].map(number),
    field('synchronous', h('input', { type: 'checkbox', checked: !!settings.budgets.synchronous, onchange: (e) => change((w) => set(w.budgets, 'synchronous', e.target.checked || undefined)) })),
    field('properties', h('input', { type: 'text', value: (settings.budgets.properties || []).join(' '), placeholder: t('default'), onchange: (e) => change((w) => { const list = e.target.value.split(/[\s,]+/).filter(Boolean); set(w.budgets, 'properties', list.length ? list : undefined); }) })));
}
