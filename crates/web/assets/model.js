// A shown run: what the server sends, made easy to ask.
//
// `order` is all that is told, of all tracks, in the order of time. A position p stands after the
// first p of them; 0 is before everything.

import { lastUpTo } from './dom.js';

/**
 * @typedef {{at: number, x: number, node: number, cause: number, lines: string[],
 *   state: [string, string][]|null, by: number, change: string, rank: number}} Entry
 * @typedef {{id: number, from: number, to: number, kind: number, text: string, sent: number,
 *   received: number[], lost: number, doubled: boolean, from_x: number, to_x: number}} Message
 */

const INTERESTING = 'ildusn!';
const INCIDENTS = new Set([10, 11, 12, 13, 14, 16, 17, 19]);

export class Shown {
  /** @param {{id: number, tracks: any[]}} data */
  constructor(data) {
    this.id = data.id;
    /** @type {Track[]} */
    this.tracks = data.tracks.map((track, t) => new Track(track, t));
    /** All kinds of messages: one of the same name has the same colour in every track. */
    this.kinds = [...new Set(this.tracks.flatMap((track) => track.kinds))];
    this.tracks.forEach((track) => { track.colours = track.kinds.map((kind) => this.kinds.indexOf(kind)); });
    /** @type {{t: number, e: number}[]} */
    this.order = [];
    for (const track of this.tracks) {
      track.entries.forEach((entry, e) => { if (entry.cause !== 0) this.order.push({ t: track.t, e }); });
    }
    const at = ({ t, e }) => this.tracks[t].entries[e].at;
    if (this.tracks.length > 1) this.order.sort((a, b) => at(a) - at(b) || a.t - b.t || a.e - b.e);
    this.order.forEach(({ t, e }, i) => { this.tracks[t].entries[e].rank = i + 1; });
    this.tracks.forEach((track) => track.index());
    // Steps of one moment stand beside each other: the cursor never goes left.
    this.xs = [];
    this.order.forEach(({ t, e }, i) => { this.xs.push(Math.max(i ? this.xs[i - 1] : 0, this.tracks[t].entries[e].x)); });
    this.interesting = [];
    this.order.forEach(({ t, e }, i) => { if (this.tracks[t].isInteresting(e)) this.interesting.push(i + 1); });
  }

  get last() { return this.order.length; }

  /** The entry before position p. */
  entryAt(p) {
    if (p < 1) return null;
    const { t, e } = this.order[p - 1];
    return { track: this.tracks[t], entry: this.tracks[t].entries[e], t, e };
  }

  /** Where on the axis p lies. */
  x(p) { return p > 0 ? this.xs[p - 1] : (this.xs[0] ?? 60) - 12; }

  /** The position of the next interesting entry in a direction, or the end. */
  nextInteresting(p, direction) {
    const found = direction > 0 ? this.interesting.find((i) => i > p)
      : this.interesting.findLast((i) => i < p);
    return found ?? (direction > 0 ? this.last : 0);
  }

  /** The position nearest to a place on the axis. */
  nearest(x) {
    let best = 0, least = Infinity;
    for (let p = 0; p <= this.last; p += 1) {
      const d = Math.abs(this.x(p) - x);
      if (d <= least) { best = p; least = d; }
    }
    return best;
  }
}

export class Track {
  /** @param {any} data as `drawing.rs` writes it @param {number} t its number */
  constructor(data, t) {
    /** @type {string} */ this.name = data.name;
    /** @type {number[]} ids in node order */ this.nodes = data.nodes;
    /** @type {string} the unit of time */ this.time = data.time;
    /** @type {number} ticks in one unit */ this.unit = data.unit;
    /** @type {string} sim or check */ this.world = data.world;
    /** @type {string[]} */ this.kinds = data.kinds;
    /** @type {number[]} the colour of each kind */ this.colours = [];
    Object.assign(this, data);
    this.t = t;
    const word = (i) => data.words[i];
    const pairs = (list) => {
      const fields = [];
      for (let i = 0; i < list.length; i += 2) fields.push([word(list[i]), word(list[i + 1])]);
      return fields;
    };
    /** @type {Entry[]} */
    this.entries = data.entries.map(([at, x, node, cause, lines, state, by, change]) => ({
      at, x, node, cause, lines: lines.map(word), state: state ? pairs(state) : null, by, change, rank: 0,
    }));
    /** @type {Message[]} */
    this.messages = data.messages.map(([id, from, to, kind, text, sent, received, lost, doubled]) => ({
      id, from, to, kind, text: word(text), sent, received, lost, doubled: !!doubled,
    }));
  }

  /** What is asked at every position, prepared once: ranks are known now. */
  index() {
    this.states = new Map(this.nodes.map((n) => [n, []]));
    this.phases = new Map(this.nodes.map((n) => [n, [{ rank: -1, lock: '', office: '', down: false, asleep: false }]]));
    this.violations = [];
    this.sentRanks = [];
    this.grantRanks = [];
    this.sentBy = new Map();
    this.messages.forEach((m, i) => {
      this.sentRanks.push(this.entries[m.sent].rank);
      if (!this.sentBy.has(m.sent)) this.sentBy.set(m.sent, []);
      this.sentBy.get(m.sent).push(i);
    });
    for (const m of this.messages) {
      const ends = m.received.map((e) => this.entries[e].x);
      if (m.lost >= 0) ends.push(this.entries[m.lost].x);
      m.from_x = this.entries[m.sent].x;
      m.to_x = Math.max(m.from_x + 40, ...ends);
    }
    this.sentRanks.sort((a, b) => a - b);
    this.receivedAt = new Map();
    this.messages.forEach((m, i) => m.received.forEach((e) => this.receivedAt.set(e, i)));
    this.entries.forEach((entry, e) => {
      if (entry.state && this.states.has(entry.node)) this.states.get(entry.node).push({ rank: entry.rank, fields: entry.state });
      if (entry.change && this.phases.has(entry.node)) this.turn(entry);
      if (entry.change === 'i') this.grantRanks.push(entry.rank);
      if (entry.cause === 19) {
        const text = entry.lines[0].replace(/^✗ /, '');
        const [property, ...detail] = text.replace(/ violated$/, ':').split(':');
        this.violations.push({ property: property.trim(), detail: detail.join(':').trim(), rank: entry.rank, e });
      }
    });
    this.firstX = this.entries.reduce((least, entry) => Math.min(least, entry.x), Infinity);
    if (!Number.isFinite(this.firstX)) this.firstX = 0;
  }

  turn(entry) {
    const list = this.phases.get(entry.node);
    const next = { ...list[list.length - 1], rank: entry.rank };
    switch (entry.change) {
      case 'w': next.lock = 'waiting'; break;
      case 'i': next.lock = 'inside'; break;
      case 'o': next.lock = ''; break;
      case 'l': next.office = 'leading'; break;
      case 'f': next.office = 'following'; break;
      case 'n': next.office = ''; break;
      case 'd': Object.assign(next, { lock: '', office: '', down: true, asleep: false }); break;
      case 'u': next.down = false; break;
      case 's': next.asleep = true; break;
      case 'k': next.asleep = false; break;
      default: return;
    }
    list.push(next);
  }

  isInteresting(e) {
    const { change, cause } = this.entries[e];
    return INCIDENTS.has(cause) || (change !== '' && INTERESTING.includes(change));
  }

  /** How a node stands at position p: waiting, inside, leading, following, down, paused or nothing. */
  phase(node, p) {
    const list = this.phases.get(node);
    const { lock, office, down, asleep } = list[Math.max(0, lastUpTo(list, p, (s) => s.rank))];
    return down ? 'down' : asleep ? 'paused' : lock || office;
  }

  /** A node's state at position p, and the one before it. */
  state(node, p) {
    const list = this.states.get(node) || [], at = lastUpTo(list, p, (s) => s.rank);
    return { now: list[at] || null, before: list[at - 1] || null };
  }

  sent(p) { return lastUpTo(this.sentRanks, p, (rank) => rank) + 1; }
  granted(p) { return lastUpTo(this.grantRanks, p, (rank) => rank) + 1; }

  /** Messages on their way at position p. */
  flying(p) {
    return this.messages.filter((m) => {
      if (this.entries[m.sent].rank > p) return false;
      if (m.received.length) return this.entries[m.received[m.received.length - 1]].rank > p;
      return m.lost < 0 || this.entries[m.lost].rank > p;
    });
  }

  /** In units of time, as people write it. */
  timeOf(at) { return String(Math.round(at / this.unit * 1e6) / 1e6); }

  /** Whom a node has asked since its last request: its quorum, or everyone. */
  asked(node, p) {
    const asked = new Set();
    const start = this.entries.findLast((entry) => entry.node === node && entry.change === 'w' && entry.rank <= p);
    if (!start) return asked;
    for (const m of this.messages) {
      if (m.from !== node) continue;
      const rank = this.entries[m.sent].rank;
      if (rank >= start.rank && rank <= p && /request|ask|lock/i.test(this.kinds[m.kind])) asked.add(m.to);
    }
    return asked;
  }

  /** Causes and effects of entries: along each node, and along each message. */
  links() {
    if (this.before) return this;
    this.before = this.entries.map(() => []);
    this.after = this.entries.map(() => []);
    const last = new Map();
    this.entries.forEach((entry, e) => {
      if (entry.cause >= 10) return;
      const link = (j) => { this.before[e].push(j); this.after[j].push(e); };
      if (last.has(entry.node)) link(last.get(entry.node));
      last.set(entry.node, e);
      if (entry.by >= 0) link(entry.by);
    });
    return this;
  }

  /** All that could have caused a message, and all it could have caused. */
  cone(message) {
    const { before, after } = this.links();
    const reach = (starts, links) => {
      const seen = new Set(starts), queue = [...starts];
      while (queue.length) for (const j of links[queue.pop()]) if (!seen.has(j)) { seen.add(j); queue.push(j); }
      return seen;
    };
    return { past: reach([message.sent], before), future: reach(message.received, after) };
  }

  /** The vector time of a step: how many steps of each node it knows of. */
  vector(past) {
    return this.nodes.map((node) => [...past].filter((e) => this.entries[e].node === node && this.entries[e].cause < 10).length);
  }

  /** How a fault names this message: the n-th of its kind from one to the other. */
  selector(message) {
    const alike = this.messages.filter((m) => m.from === message.from && m.to === message.to && m.kind === message.kind);
    return message.from + '>' + message.to + '/' + this.kinds[message.kind] + '#' + (alike.indexOf(message) + 1);
  }
}
