// The graph at one moment: links, holders, pointers between processes, messages on their way.

import { $, h, s } from './dom.js';
import { t } from './i18n.js';

const MOST_EDGES = 1200;
/** Fields of a state that point at a node. */
const POINTERS = /^(holder|father|parent|next|last|successor|leader|coordinator|token_at|probable_owner)$/i;

export class Graph {
  /** @param {{onNode: Function, onLink: Function, onMessage: Function}} acts */
  constructor(acts) {
    this.acts = acts;
    this.box = $('graph');
    this.track = null;
    new ResizeObserver(() => { if (this.track) { this.build(); this.go(this.position, this.chosen); } }).observe(this.box);
  }

  show(track) {
    this.track = track;
    this.build();
  }

  build() {
    const { track, box } = this, width = Math.max(120, box.clientWidth), height = Math.max(100, box.clientHeight);
    this.places = arrange(track, width, height);
    this.radius = Math.max(5, Math.min(19, nearest(this.places) / 2.7));
    const edges = track.edges || all(track.nodes);
    const lines = edges.length > MOST_EDGES ? [] : edges.map(([a, b]) => {
      const [x1, y1] = this.places.get(a), [x2, y2] = this.places.get(b);
      const line = { x1, y1, x2, y2 };
      const hit = s('line', { ...line, class: 'hit', tabindex: edges.length <= 60 ? 0 : -1, role: 'button', 'aria-label': t('link') + ' p' + a + ' – p' + b, 'data-link': a + '>' + b });
      const act = () => this.acts.onLink(a, b);
      hit.addEventListener('click', act);
      hit.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
      return s('g', {}, s('line', { ...line, class: 'edge', ...(track.directed ? { 'marker-end': 'url(#arrow-edge)' } : {}) }), hit);
    });
    this.dots = new Map();
    const dots = track.nodes.map((node) => {
      const [x, y] = this.places.get(node);
      const sign = s('text', { class: 'sign', y: -this.radius - 8 });
      const dot = s('g', { class: 'node-dot', transform: 'translate(' + x + ',' + y + ')', tabindex: 0, role: 'button', 'data-node': node, 'aria-label': 'p' + node },
        s('circle', { class: 'ring', r: this.radius + 5 }), s('circle', { class: 'dot', r: this.radius }),
        s('text', this.radius < 9 ? { 'font-size': 8 } : {}, this.radius < 8 ? '' : String(node)), sign);
      const act = () => this.acts.onNode(track.t, node);
      dot.addEventListener('click', act);
      dot.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
      this.dots.set(node, { dot, sign, was: '' });
      return dot;
    });
    const marker = (id, colour) => s('marker', { id, viewBox: '0 0 10 10', refX: id === 'arrow-edge' ? 10 + this.radius * 0.9 : 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse' },
      s('path', { d: 'M0 0L10 5L0 10z', fill: 'var(--' + colour + ')' }));
    this.moving = s('g');
    const svg = s('svg', { viewBox: '0 0 ' + width + ' ' + height, role: 'group', 'aria-label': t('topology') },
      s('defs', {}, marker('arrow-pointer', 'good'), marker('arrow-edge', 'lane')), s('g', {}, ...lines), this.moving, s('g', {}, ...dots));
    const note = edges.length > MOST_EDGES ? ' · ' + edges.length + ' ' + t('links') : '';
    this.box.replaceChildren(h('div', { class: 'caption' }, track.name + ' · ' + (track.topology || t('topology')) + note), svg);
  }

  /** @param {number} p @param {number|null} chosen a node */
  go(p, chosen) {
    const { track } = this;
    this.position = p;
    this.chosen = chosen;
    if (!track) return;
    const asked = chosen === null || !/^(waiting|inside)$/.test(track.phase(chosen, p)) ? new Set() : track.asked(chosen, p);
    const moving = [];
    for (const [node, it] of this.dots) {
      const phase = track.phase(node, p);
      const names = 'node-dot ' + phase + (node === chosen ? ' chosen' : '') + (asked.has(node) ? ' asked' : '');
      if (names !== it.was) {
        it.dot.setAttribute('class', names);
        it.was = names;
        it.sign.textContent = phase === 'inside' ? '◆' : phase === 'leading' ? '★' : phase === 'down' ? '✕' : phase === 'paused' ? 'zz' : '';
        it.dot.setAttribute('aria-label', 'p' + node + ' ' + (phase ? t(phase) : ''));
      }
      const { now } = track.state(node, p);
      if (!now || track.nodes.length > 64) continue;
      for (const [name, value] of now.fields) {
        if (!POINTERS.test(name)) continue;
        const found = /^(?:Some\()?(?:[A-Z]\w*\()?(\d+)\)*$/.exec(value), to = found ? Number(found[1]) : NaN;
        if (!this.places.has(to) || to === node) continue;
        moving.push(this.arrow(node, to, name));
        break;
      }
    }
    const flying = track.flying(p), last = track.entries.findLast((entry) => entry.rank <= p);
    this.now = last ? last.at : 0;
    for (const m of flying.slice(0, 400)) {
      if (!this.places.has(m.from) || !this.places.has(m.to)) continue;
      const [x1, y1] = this.places.get(m.from), [x2, y2] = this.places.get(m.to), share = this.share(m);
      const dot = s('circle', { class: 'flying k' + track.colours[m.kind] % 6, cx: x1 + (x2 - x1) * share, cy: y1 + (y2 - y1) * share, r: 6, fill: 'currentColor', 'data-message': m.id },
        s('title', {}, 'p' + m.from + ' → p' + m.to + ' ' + m.text));
      dot.addEventListener('click', () => this.acts.onMessage(track.t, m));
      moving.push(dot);
    }
    this.moving.replaceChildren(...moving);
  }

  /** How far a message has come. */
  share(m) {
    const { track } = this, sent = track.entries[m.sent].at;
    const end = m.received.length ? m.received[m.received.length - 1] : m.lost;
    if (end < 0) return 0.5;
    return Math.max(0.12, Math.min(0.88, (this.now - sent) / Math.max(1, track.entries[end].at - sent)));
  }

  arrow(from, to, name) {
    const [x1, y1] = this.places.get(from), [x2, y2] = this.places.get(to), length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length], gap = this.radius + 4;
    // Beside the link, so that both can be seen.
    const [ox, oy] = [-uy * 5, ux * 5];
    return s('line', { class: 'pointer', x1: x1 + ux * gap + ox, y1: y1 + uy * gap + oy, x2: x2 - ux * gap + ox, y2: y2 - uy * gap + oy, 'marker-end': 'url(#arrow-pointer)' }, s('title', {}, 'p' + from + ' ' + name + ' → p' + to));
  }
}

/** How close the closest two places are. */
function nearest(places) {
  const all = [...places.values()];
  let least = 60;
  all.forEach(([x, y], i) => all.slice(i + 1).forEach(([u, v]) => { least = Math.min(least, Math.hypot(x - u, y - v)); }));
  return least;
}

const all = (nodes) => nodes.flatMap((a, i) => nodes.slice(i + 1).map((b) => [a, b]));

/** A place for each node: rows for grids, levels for trees, a circle for all else. */
function arrange(track, width, height) {
  const { nodes } = track, places = new Map(), [cx, cy] = [width / 2, height / 2 + 6];
  const grid = /^(?:grid|torus):(\d+)x(\d+)$/.exec(track.topology || '');
  const edges = track.edges;
  const tree = edges && edges.length === nodes.length - 1 && nodes.length > 2;
  if (grid || /^(grid|torus)$/.test(track.topology || '')) {
    const columns = grid ? Number(grid[2]) : Math.ceil(Math.sqrt(nodes.length)), rows = Math.ceil(nodes.length / columns);
    nodes.forEach((node, i) => places.set(node, [width * (i % columns + 0.8) / (columns + 0.6), 22 + (height - 22) * (Math.floor(i / columns) + 0.7) / (rows + 0.4)]));
  } else if (tree) {
    const next = new Map(nodes.map((n) => [n, []]));
    edges.forEach(([a, b]) => { next.get(a).push(b); next.get(b).push(a); });
    const star = nodes.find((n) => next.get(n).length === nodes.length - 1), root = star ?? nodes[0];
    const depth = new Map([[root, 0]]), levels = [[root]];
    for (const queue = [root]; queue.length;) {
      const node = queue.shift();
      for (const child of next.get(node)) {
        if (depth.has(child)) continue;
        depth.set(child, depth.get(node) + 1);
        (levels[depth.get(child)] ||= []).push(child);
        queue.push(child);
      }
    }
    if (levels.every((level) => level.length === 1)) {
      nodes.forEach((node) => places.set(node, [width * (depth.get(node) + 0.7) / (levels.length + 0.4), cy]));
    } else {
      levels.forEach((level, d) => level.forEach((node, i) => places.set(node, [width * (i + 0.5) / level.length, 30 + (height - 44) * (d + 0.35) / levels.length])));
    }
  } else {
    const [rx, ry] = [Math.max(30, width / 2 - 40), Math.max(30, height / 2 - 40)];
    nodes.forEach((node, i) => {
      const angle = 2 * Math.PI * i / nodes.length - Math.PI / 2;
      places.set(node, nodes.length === 1 ? [cx, cy] : [cx + Math.min(rx, ry * 1.7) * Math.cos(angle), cy + ry * Math.sin(angle)]);
    });
  }
  return places;
}
