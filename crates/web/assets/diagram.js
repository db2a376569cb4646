// The space–time diagram, on a canvas: only what is in sight is drawn, and the moving cursor is a
// thing of its own above it, so that going through time draws nothing anew.

import { $, perFrame } from './dom.js';

const GUTTER = 66, AXIS = 26, TOP = 30, TITLE = 20;

export class Diagram {
  /** @param {{onEntry: Function, onMessage: Function, onNode: Function, onPlace: Function}} acts */
  constructor(acts) {
    this.acts = acts;
    this.canvas = $('diagram');
    this.picture = $('picture');
    this.shown = null;
    this.zoom = 1;
    this.left = 0;
    this.top = 0;
    this.lanes = [];
    this.hidden = new Set();
    this.position = 0;
    this.chosen = null;
    this.redraw = perFrame(() => this.draw());
    this.width = this.picture.clientWidth;
    this.height = this.picture.clientHeight;
    new ResizeObserver(() => {
      this.width = this.picture.clientWidth;
      this.height = this.picture.clientHeight;
      this.place();
      this.redraw();
      this.follow(false);
    }).observe(this.picture);
    this.listen();
  }

  /** Shows runs at a position; `lanes` is the order of nodes, `hidden` the kinds left out. */
  show(shown, lanes, hidden, position) {
    const same = this.shown !== null && shown !== null && Math.abs((this.shown.tracks[0]?.width || 0) - (shown.tracks[0]?.width || 0)) < 1;
    this.shown = shown;
    this.position = position;
    this.order = lanes;
    this.hidden = hidden;
    this.place();
    if (!same) this.fit();
    this.redraw();
  }

  /** Where lanes lie. */
  place() {
    this.lanes = [];
    if (!this.shown) return;
    const { tracks } = this.shown, race = tracks.length > 1;
    const all = tracks.reduce((sum, track) => sum + track.nodes.length, 0);
    const room = this.height - AXIS - TOP - (race ? tracks.length * (TITLE + 8) : 0);
    this.spacing = Math.max(22, Math.min(76, room / Math.max(1, all)));
    let y = TOP + this.spacing / 2 - (race ? 0 : 6);
    this.titles = [];
    for (const track of tracks) {
      if (race) { this.titles.push({ text: track.name, y: y - this.spacing / 2 + 6, track }); y += TITLE; }
      const nodes = [...(this.order || []).filter((n) => track.nodes.includes(n)), ...track.nodes.filter((n) => !(this.order || []).includes(n))];
      const places = new Map();
      nodes.forEach((node) => { places.set(node, y); this.lanes.push({ track, node, y }); y += this.spacing; });
      track.places = places;
      if (race) y += 8;
    }
    this.bottom = y - this.spacing / 2;
    this.top = Math.max(0, Math.min(this.top, this.bottom + AXIS - this.height));
  }

  get firstX() { return Math.min(...this.shown.tracks.map((track) => track.firstX)) - 26; }
  get lastX() { return Math.max(...this.shown.tracks.map((track) => track.width)); }
  px(x) { return GUTTER + (x - this.firstX) * this.zoom - this.left; }
  worldX(px) { return (px - GUTTER + this.left) / this.zoom + this.firstX; }

  /** The whole run in sight, or as much as one can still read. */
  fit(whole = false) {
    if (!this.shown) return;
    const room = this.width - GUTTER - 10, width = Math.max(1, this.lastX - this.firstX);
    this.zoom = whole ? room / width : Math.max(0.55, Math.min(1.6, room / width));
    this.left = 0;
    this.follow(false);
    this.redraw();
  }

  zoomBy(factor, px = GUTTER + (this.width - GUTTER) / 2) {
    const x = this.worldX(px);
    this.zoom = Math.max(0.002, Math.min(8, this.zoom * factor));
    this.left += this.px(x) - px;
    this.clamp();
    this.redraw();
    this.moveCursor();
  }

  pan(dx, dy = 0) {
    this.left += dx;
    this.top += dy;
    this.clamp();
    this.redraw();
    this.moveCursor();
  }

  clamp() {
    const most = (this.lastX - this.firstX) * this.zoom - (this.width - GUTTER) + 20;
    this.left = Math.max(0, Math.min(this.left, Math.max(0, most)));
    this.top = Math.max(0, Math.min(this.top, Math.max(0, this.bottom + AXIS - this.height)));
  }

  /** Moves the cursor to position p, and the view with it. */
  go(p) {
    this.position = p;
    this.follow(true);
  }

  follow(center) {
    if (!this.shown) return;
    const px = this.px(this.shown.x(this.position)), width = this.width;
    if (center && (px < GUTTER + 30 || px > width - 60)) {
      const before = this.left;
      this.left += px - (GUTTER + (width - GUTTER) / 2);
      this.clamp();
      if (this.left !== before) this.redraw();
    }
    this.moveCursor();
  }

  moveCursor() {
    if (!this.shown) return;
    const px = Math.max(GUTTER, this.px(this.shown.x(this.position)) + 4);
    $('cursor').style.transform = 'translateX(' + px + 'px)';
    $('veil').style.transform = 'translateX(' + (px + 2) + 'px)';
  }

  /** Chooses a message: what could have caused it, and what it could have caused. */
  choose(chosen) {
    this.chosen = chosen;
    this.redraw();
  }

  /** @returns {any} the colours of the page */
  colours() {
    const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue('--' + name).trim();
    const names = ['page', 'ink', 'soft', 'line', 'lane', 'bad', 'waiting', 'inside', 'leading', 'following', 'down', 'paused', 'band', 'past', 'future', 'panel'];
    /** @type {any} */
    this.paint = Object.fromEntries(names.map((name) => [name, of(name)]));
    this.paint.kinds = [0, 1, 2, 3, 4, 5].map((i) => of('k' + i));
    return this.paint;
  }

  draw() {
    const { canvas } = this, ratio = window.devicePixelRatio || 1;
    const width = this.width, height = this.height;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const c = canvas.getContext('2d'), paint = this.paint || this.colours();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = paint.page;
    c.fillRect(0, 0, width, height);
    if (!this.shown) return;
    const from = this.worldX(GUTTER - 10), to = this.worldX(width);
    c.save();
    c.beginPath();
    c.rect(GUTTER - 14, 0, width, height - AXIS);
    c.clip();
    c.translate(0, -this.top);
    this.shown.tracks.forEach((track) => this.drawTrack(c, track, from, to));
    c.restore();
    this.drawAxis(c, width, height, from, to);
    this.drawNames(c, height);
  }

  drawTrack(c, track, from, to) {
    const { paint, spacing } = this, px = (x) => this.px(x), y = (node) => track.places.get(node);
    const ys = [...track.places.values()], high = Math.min(...ys) - spacing / 2, low = Math.max(...ys) + spacing / 2;
    c.font = '11px system-ui, sans-serif';
    for (const [a, b, label] of track.bands) {
      if (b < from || a > to) continue;
      c.fillStyle = paint.band;
      c.fillRect(px(a), high, px(b) - px(a), low - high);
      c.fillStyle = paint.soft;
      c.textAlign = 'left';
      c.fillText(label, Math.max(px(a) + 4, GUTTER + 4), high + 11);
    }
    c.lineWidth = 1.2;
    c.strokeStyle = paint.lane;
    c.beginPath();
    for (const lane of ys) { c.moveTo(Math.max(GUTTER - 10, px(this.firstX)), lane); c.lineTo(px(Math.min(to, track.width)), lane); }
    c.stroke();
    for (const [what, node, a, b] of track.bars) {
      if (b < from || a > to || !track.places.has(node)) continue;
      const thick = what === 'inside' || what === 'leading' ? 13 : what === 'down' || what === 'paused' ? 9 : 6;
      const x = Math.max(px(a), -20), w = Math.max(2, Math.min(px(b), 1e4) - x);
      c.fillStyle = paint[what] || paint.band;
      if (what === 'down' || what === 'paused') {
        // The lane is broken where nobody is there.
        c.fillStyle = paint.page;
        c.fillRect(x, y(node) - 2, w, 4);
        c.strokeStyle = paint.down;
        c.setLineDash(what === 'down' ? [3, 6] : [8, 4]);
        c.beginPath(); c.moveTo(x, y(node)); c.lineTo(x + w, y(node)); c.stroke();
        c.setLineDash([]);
      } else {
        c.fillRect(x, y(node) - thick / 2, w, thick);
        if (thick === 13) { c.strokeStyle = paint.ink; c.lineWidth = 0.8; c.strokeRect(x, y(node) - 6.5, w, 13); }
      }
    }
    for (const [a, b, label] of track.gaps) {
      if (b < from || a > to) continue;
      c.fillStyle = paint.page;
      c.fillRect(px(a), high, px(b) - px(a), low - high);
      c.strokeStyle = paint.lane;
      c.lineWidth = 1;
      c.setLineDash([2, 3]);
      c.beginPath();
      for (const x of [a, b]) { c.moveTo(px(x), high); c.lineTo(px(x), low); }
      c.stroke();
      c.setLineDash([]);
      c.fillStyle = paint.soft;
      c.textAlign = 'center';
      c.fillText(label, px((a + b) / 2), (high + low) / 2);
    }
    this.drawArrows(c, track, from, to);
    this.drawPoints(c, track, from, to);
    for (const { e } of track.violations) {
      const x = px(track.entries[e].x);
      c.strokeStyle = paint.bad;
      c.lineWidth = 2;
      c.setLineDash([6, 3]);
      c.beginPath(); c.moveTo(x, high); c.lineTo(x, low); c.stroke();
      c.setLineDash([]);
    }
  }

  /** Where a message is drawn: each arrival, or where it got lost, or open. */
  *arrows(track, message) {
    if (this.hidden.has(track.kinds[message.kind])) return;
    const x1 = track.entries[message.sent].x, y1 = track.places.get(message.from), y2 = track.places.get(message.to);
    if (y1 === undefined || y2 === undefined) return;
    for (const e of message.received) yield { x1, y1, x2: track.entries[e].x, y2, fate: e === message.received[0] ? 'arrived' : 'again' };
    if (message.lost >= 0 && message.received.length === 0) {
      const end = track.entries[message.lost].x, late = end > x1 + 8;
      yield late ? { x1, y1, x2: end, y2, fate: 'lost' } : { x1, y1, x2: x1 + 34, y2: y1 + (y2 - y1) * 0.45, fate: 'lost' };
    } else if (message.received.length === 0) {
      yield { x1, y1, x2: x1 + 40, y2: y1 + (y2 - y1) * 0.6, fate: 'pending' };
    }
  }

  drawArrows(c, track, from, to) {
    const { paint, chosen } = this, mine = chosen && chosen.t === track.t ? chosen : null;
    const seen = [];
    for (const message of track.messages) {
      if (message.to_x < from || message.from_x > to) continue;
      for (const arrow of this.arrows(track, message)) {
        if (arrow.x2 < from || arrow.x1 > to) continue;
        seen.push({ message, arrow });
      }
    }
    const many = seen.length > 1500, labelled = seen.length <= 140 && this.spacing >= 34;
    for (const { message, arrow } of seen) {
      const x1 = this.px(arrow.x1), x2 = this.px(arrow.x2), { y1, y2, fate } = arrow;
      let colour = paint.kinds[track.colours[message.kind] % 6], alpha = many ? 0.5 : 1;
      c.lineWidth = many ? 0.7 : 1.5;
      if (mine) {
        if (mine.message === message) c.lineWidth = 3.4;
        else if (message.received.some((e) => mine.past.has(e))) colour = paint.past;
        else if (mine.future.has(message.sent)) colour = paint.future;
        else alpha = 0.16;
      }
      c.globalAlpha = alpha;
      c.strokeStyle = c.fillStyle = colour;
      // Kinds differ in their dashes, too: colour is never all.
      const dash = Math.floor(track.colours[message.kind] / 6) % 2 ? [7, 3] : [];
      c.setLineDash(fate === 'lost' ? [4, 3] : fate === 'pending' ? [2, 4] : fate === 'again' ? [9, 3] : dash);
      c.beginPath(); c.moveTo(x1, y1); c.lineTo(x2, y2); c.stroke();
      c.setLineDash([]);
      if (many) continue;
      const angle = Math.atan2(y2 - y1, x2 - x1);
      if (fate === 'lost') {
        c.strokeStyle = paint.bad;
        c.lineWidth = 2.4;
        c.beginPath(); c.moveTo(x2 - 5, y2 - 5); c.lineTo(x2 + 5, y2 + 5); c.moveTo(x2 - 5, y2 + 5); c.lineTo(x2 + 5, y2 - 5); c.stroke();
      } else if (y1 !== y2 || x1 !== x2) {
        c.beginPath();
        c.moveTo(x2, y2);
        c.lineTo(x2 - 9 * Math.cos(angle - 0.35), y2 - 9 * Math.sin(angle - 0.35));
        c.lineTo(x2 - 9 * Math.cos(angle + 0.35), y2 - 9 * Math.sin(angle + 0.35));
        c.fill();
      }
      if (labelled && Math.hypot(x2 - x1, y2 - y1) > 52) this.label(c, track.kinds[message.kind], (x1 + x2) / 2, (y1 + y2) / 2, angle, colour);
    }
    c.globalAlpha = 1;
  }

  label(c, text, x, y, angle, colour) {
    const turned = Math.abs(angle) > Math.PI / 2 ? angle + Math.PI : angle;
    c.save();
    c.translate(x, y);
    c.rotate(turned);
    c.font = '10.5px system-ui, sans-serif';
    c.textAlign = 'center';
    c.lineWidth = 3.5;
    c.strokeStyle = this.paint.page;
    c.strokeText(text, 0, -4);
    c.fillStyle = colour;
    c.fillText(text, 0, -4);
    c.restore();
  }

  drawPoints(c, track, from, to) {
    const { paint, chosen } = this, mine = chosen && chosen.t === track.t ? chosen : null;
    const seen = (entry) => entry.cause !== 0 && entry.x >= from && entry.x <= to;
    const many = track.entries.reduce((sum, entry) => sum + (seen(entry) ? 1 : 0), 0) > 2500;
    track.entries.forEach((entry, e) => {
      if (!seen(entry)) return;
      const y = track.places.get(entry.node), x = this.px(entry.x);
      if (y === undefined) return;
      c.fillStyle = paint.ink;
      c.globalAlpha = 1;
      let size = 3.2;
      if (mine) {
        if (mine.past.has(e)) { c.fillStyle = paint.past; size = 4.5; } else if (mine.future.has(e)) { c.fillStyle = paint.future; size = 4.5; } else c.globalAlpha = 0.25;
      }
      if (many && entry.cause < 10) {
        // From afar, a step is a tick: bars and crashes are what one looks for.
        c.globalAlpha *= 0.5;
        c.fillRect(x, y - 2, 1, 4);
        return;
      }
      c.beginPath();
      if (entry.cause === 12) {
        c.strokeStyle = paint.bad;
        c.lineWidth = 3;
        c.moveTo(x - 6, y - 6); c.lineTo(x + 6, y + 6); c.moveTo(x - 6, y + 6); c.lineTo(x + 6, y - 6);
        c.stroke();
      } else if (entry.cause === 13 || entry.cause === 15) {
        c.moveTo(x - 4, y + 5); c.lineTo(x - 4, y - 5); c.lineTo(x + 6, y);
        c.fill();
      } else if (entry.cause === 14) {
        c.fillRect(x - 4, y - 5, 3, 10); c.fillRect(x + 1, y - 5, 3, 10);
      } else if (entry.cause === 2) {
        c.fillStyle = paint.page; c.strokeStyle = paint.ink; c.lineWidth = 1.6;
        c.arc(x, y, 4, 0, 7); c.fill(); c.stroke();
      } else if (entry.cause === 4 || entry.cause === 5) {
        c.rect(x - 3, y - 3, 6, 6); c.fill();
      } else {
        c.arc(x, y, size, 0, 7); c.fill();
      }
    });
    c.globalAlpha = 1;
  }

  drawAxis(c, width, height, from, to) {
    const { paint } = this, y = height - AXIS;
    c.fillStyle = paint.panel;
    c.fillRect(0, y, width, AXIS);
    c.strokeStyle = paint.line;
    c.lineWidth = 1;
    c.beginPath(); c.moveTo(0, y + 0.5); c.lineTo(width, y + 0.5); c.stroke();
    c.font = '11px system-ui, sans-serif';
    c.fillStyle = paint.soft;
    c.textAlign = 'center';
    let free = GUTTER;
    const first = this.shown.tracks[0];
    for (const [x, label, until] of first.ticks) {
      if (until < from || x > to) continue;
      // A moment that is drawn wide, because much happens in it, is a thick stretch.
      if (until > x) c.fillRect(this.px(x), y - 1, this.px(until) - this.px(x), 3);
      const at = (this.px(x) + this.px(until)) / 2, half = c.measureText(label).width / 2 + 6;
      if (at - half < free) continue;
      c.fillText(label, at, y + 17);
      if (until === x) c.fillRect(at, y, 1, 5);
      free = at + half;
    }
    c.textAlign = 'left';
    c.fillText(first.time, 8, y + 17);
  }

  drawNames(c, height) {
    const { paint } = this;
    c.save();
    c.beginPath(); c.rect(0, 0, this.width, height - AXIS); c.clip();
    c.fillStyle = paint.page;
    c.fillRect(0, 0, GUTTER - 14, height - AXIS);
    c.textAlign = 'right';
    for (const { track, node, y } of this.lanes) {
      const phase = track.phase(node, this.position);
      c.font = '600 13px system-ui, sans-serif';
      if (phase) {
        c.fillStyle = paint[phase] || paint.band;
        c.fillRect(6, y - this.top - 9, GUTTER - 26, 18);
      }
      c.fillStyle = phase === 'down' ? paint.page : paint.ink;
      c.fillText('p' + node, GUTTER - 24, y - this.top + 4.5);
    }
    c.textAlign = 'left';
    c.font = '600 13px system-ui, sans-serif';
    for (const { text, y, track } of this.titles || []) {
      const wide = c.measureText(text).width;
      c.fillStyle = paint.page;
      c.fillRect(4, y - this.top - 3, wide + 90, 17);
      c.fillStyle = paint.ink;
      c.fillText(text, 8, y - this.top + 10);
      c.font = '12px system-ui, sans-serif';
      c.fillStyle = paint.soft;
      c.fillText(track.sent(this.position) + ' ✉', 18 + wide, y - this.top + 10);
      c.font = '600 13px system-ui, sans-serif';
    }
    c.restore();
  }

  /** The names show how everyone stands: only that strip is drawn anew at each step. */
  drawStanding() {
    if (!this.shown || !this.paint) return;
    const ratio = window.devicePixelRatio || 1, c = this.canvas.getContext('2d');
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawNames(c, this.height);
  }

  /** What lies at a place of the picture. @returns {any} */
  hit(px, py) {
    if (!this.shown) return null;
    const y = py + this.top, lane = this.lanes.find((l) => Math.abs(l.y - y) < Math.min(12, this.spacing / 2));
    if (px < GUTTER - 12) return lane ? { node: lane.node, t: lane.track.t } : null;
    let best = null, least = 9;
    const near = this.worldX(px - 10), far = this.worldX(px + 10);
    for (const track of this.shown.tracks) {
      track.entries.forEach((entry, e) => {
        if (entry.x < near || entry.x > far || entry.cause === 0 || !track.places.has(entry.node)) return;
        const d = Math.hypot(this.px(entry.x) - px, track.places.get(entry.node) - y);
        if (d < least) { least = d; best = { t: track.t, e }; }
      });
      if (best) continue;
      for (const message of track.messages) {
        if (message.to_x < near || message.from_x > far) continue;
        for (const arrow of this.arrows(track, message)) {
          const d = distance(px, y, this.px(arrow.x1), arrow.y1, this.px(arrow.x2), arrow.y2);
          if (d < Math.min(least, 6)) { least = d; best = { t: track.t, message }; }
        }
      }
    }
    return best || { x: this.worldX(px) };
  }

  /** Where something lies on the screen: for scripts and tests. */
  locate({ t = 0, message, entry, node }) {
    const box = this.canvas.getBoundingClientRect(), track = this.shown.tracks[t];
    let x = GUTTER / 2, y = 0;
    if (message !== undefined) {
      const arrow = [...this.arrows(track, track.messages.find((m) => m.id === message))][0];
      x = (this.px(arrow.x1) + this.px(arrow.x2)) / 2;
      y = (arrow.y1 + arrow.y2) / 2;
    } else if (entry !== undefined) {
      x = this.px(track.entries[entry].x);
      y = track.places.get(track.entries[entry].node);
    } else y = track.places.get(node);
    return { x: box.x + x, y: box.y + y - this.top };
  }

  listen() {
    const { canvas } = this, tip = $('tip');
    let drag = null;
    const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.x, event.clientY - box.y]; };
    canvas.addEventListener('pointerdown', (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (drag && (drag.moved || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4)) {
        this.pan(drag.x - event.clientX, drag.y - event.clientY);
        drag = { x: event.clientX, y: event.clientY, moved: true };
        tip.hidden = true;
        return;
      }
      if (!this.shown) return;
      const [x, y] = at(event), hit = this.hit(x, y);
      let text = '';
      if (hit && hit.message) text = 'p' + hit.message.from + ' → p' + hit.message.to + '  ' + hit.message.text;
      else if (hit && hit.e !== undefined) text = this.shown.tracks[hit.t].entries[hit.e].lines.join('\n');
      tip.hidden = !text;
      tip.textContent = text;
      tip.style.left = Math.min(x + 14, this.width - 240) + 'px';
      tip.style.top = Math.min(y + 14, this.height - 60) + 'px';
      canvas.style.cursor = hit && (hit.message || hit.e !== undefined || hit.node !== undefined) ? 'pointer' : 'crosshair';
    });
    canvas.addEventListener('pointerup', (event) => {
      const moved = drag && drag.moved;
      drag = null;
      if (moved) return;
      const hit = this.hit(...at(event));
      if (!hit) return;
      if (hit.message) this.acts.onMessage(hit.t, hit.message);
      else if (hit.e !== undefined) this.acts.onEntry(hit.t, hit.e);
      else if (hit.node !== undefined) this.acts.onNode(hit.t, hit.node);
      else this.acts.onPlace(hit.x);
    });
    canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) this.zoomBy(Math.exp(-event.deltaY / 300), at(event)[0]);
      else this.pan(event.shiftKey ? event.deltaY : event.deltaX, event.shiftKey ? 0 : event.deltaY);
    }, { passive: false });
  }
}

/** How far a point is from a line between two others. */
function distance(x, y, x1, y1, x2, y2) {
  const dx = x2 - x1, dy = y2 - y1, length = dx * dx + dy * dy;
  const along = length ? Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / length)) : 0;
  return Math.hypot(x - x1 - along * dx, y - y1 - along * dy);
}
