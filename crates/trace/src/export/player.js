'use strict';
(() => {
  const german = (navigator.language || 'en').toLowerCase().startsWith('de');
  const say = german ? {
    first: 'Zum Anfang', back: 'Einen Schritt zurück', play: 'Abspielen', stop: 'Anhalten',
    next: 'Einen Schritt vor', last: 'Zum Ende', begin: 'Beginn', step: 'Schritt', of: 'von',
    states: 'Zustände', unknown: 'noch nichts', down: 'abgestürzt', keys: '← → Pos1 Ende Leertaste',
    message: 'Nachricht', sent: 'gesendet', got: 'angekommen', lost: 'verloren',
    flying: 'noch unterwegs', past: 'mögliche Ursachen', future: 'mögliche Folgen', time: 'Zeit',
  } : {
    first: 'To the begin', back: 'One step back', play: 'Play', stop: 'Stop',
    next: 'One step on', last: 'To the end', begin: 'begin', step: 'step', of: 'of',
    states: 'States', unknown: 'nothing yet', down: 'crashed', keys: '← → Home End space',
    message: 'message', sent: 'sent', got: 'arrived', lost: 'lost',
    flying: 'still on its way', past: 'possible causes', future: 'possible effects', time: 'time',
  };
  document.documentElement.lang = german ? 'de' : 'en';
  const data = JSON.parse(document.getElementById('kp-data').textContent);
  const { steps, messages, tracks } = data;
  const word = (i) => data.words[i];
  const $ = (id) => document.getElementById(id);
  const make = (tag, props = {}, ...children) => {
    const it = Object.assign(document.createElement(tag), props);
    it.append(...children);
    return it;
  };

  // What can be stepped to: what is told. Position 0 is before all of it.
  const told = steps.map((_, i) => i).filter((i) => steps[i].w.length > 0);
  let position = 0;
  const current = () => (position > 0 ? told[position - 1] : -1);

  // Causes and effects: along each node, and along each message.
  const before = [], after = steps.map(() => []), lastOf = new Map();
  steps.forEach((s, i) => {
    before[i] = [];
    const link = (j) => { before[i].push(j); after[j].push(i); };
    if (!s.p) return;
    const key = s.t + ':' + s.n;
    if (lastOf.has(key)) link(lastOf.get(key));
    lastOf.set(key, i);
    if (s.c !== undefined) link(s.c);
  });
  const reach = (starts, links) => {
    const seen = new Set(starts), queue = [...starts];
    while (queue.length) {
      for (const j of links[queue.pop()]) if (!seen.has(j)) { seen.add(j); queue.push(j); }
    }
    return seen;
  };

  // What each node's state was, and since when.
  const states = new Map();
  const history = (t, n) => {
    const key = t + ':' + n;
    if (!states.has(key)) states.set(key, []);
    return states.get(key);
  };
  data.initial.forEach(([t, n, fields]) => history(t, n).push({ since: -1, fields }));
  const downs = new Map();
  steps.forEach((s, i) => {
    if (s.s) history(s.t, s.n).push({ since: i, fields: s.s });
    if (!s.p && s.n !== undefined) {
      const text = s.w.length ? word(s.w[0]) : '';
      const key = s.t + ':' + s.n;
      if (!downs.has(key)) downs.set(key, []);
      if (/ crashes$/.test(text)) downs.get(key).push([i, true]);
      if (/ restarts /.test(text)) downs.get(key).push([i, false]);
    }
  });
  const upTo = (list, i, since) => {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (since(list[middle]) <= i) low = middle + 1; else high = middle;
    }
    return low - 1;
  };

  // The picture.
  const picture = $('kp-picture'), svg = picture.querySelector('svg');
  const numberOf = new Map(steps.map((s, i) => [s.t + ':' + s.e, i]));
  const messageOf = new Map(messages.map((m, i) => [m.t + ':' + m.id, i]));
  const points = [], arrows = [];
  svg.querySelectorAll('[data-track]').forEach((group) => {
    const t = group.dataset.track;
    group.querySelectorAll('[data-entry]').forEach((it) => {
      points.push({ it, step: numberOf.get(t + ':' + it.dataset.entry) });
    });
    group.querySelectorAll('[data-message]').forEach((it) => {
      const message = messageOf.get(t + ':' + it.dataset.message);
      if (message !== undefined) arrows.push({ it, message });
    });
  });
  const cursor = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  cursor.id = 'kp-cursor';
  cursor.setAttribute('y1', 56);
  cursor.setAttribute('y2', svg.viewBox.baseVal.height);
  svg.append(cursor);

  // The controls.
  const head = $('kp-head');
  const button = (label, text, act) => {
    const it = make('button', { type: 'button', textContent: text, title: label, onclick: act });
    it.setAttribute('aria-label', label);
    return it;
  };
  tracks.forEach((track) => {
    const verdict = make('span', { textContent: track.verdict });
    if (track.verdict !== 'ok') verdict.className = 'kp-wrong';
    head.append(make('span', {}, make('b', { textContent: track.name }), ' ', verdict));
  });
  const first = button(say.first, '|◀', () => go(0));
  const back = button(say.back, '◀', () => go(position - 1));
  const play = button(say.play, '▶▶', () => toggle());
  const next = button(say.next, '▶', () => go(position + 1));
  const last = button(say.last, '▶|', () => go(told.length));
  [back.id, next.id] = ['kp-back', 'kp-next'];
  const slide = make('input', { type: 'range', min: 0, max: told.length, value: 0 });
  slide.setAttribute('aria-label', say.time);
  slide.oninput = () => go(Number(slide.value));
  const where = make('span', { id: 'kp-where' });
  where.setAttribute('aria-live', 'polite');
  head.append(make('span', {}, first, ' ', back, ' ', play, ' ', next, ' ', last), slide, where,
    make('span', { className: 'kp-hint', textContent: say.keys }));

  // The story.
  const story = $('kp-story');
  const items = told.map((i, k) => {
    const s = steps[i], body = make('span');
    if (tracks.length > 1) {
      body.append(make('span', { className: 'kp-track', textContent: tracks[s.t].name + '  ' }));
    }
    body.append(word(s.w[0]));
    s.w.slice(1).forEach((w) => body.append(make('span', { className: 'kp-more', textContent: word(w) })));
    const it = make('li', {}, make('time', { textContent: word(s.at) }), body);
    it.onclick = () => go(k + 1);
    story.append(it);
    return it;
  });

  const pairs = (fields) => {
    const map = new Map();
    for (let i = 0; i < fields.length; i += 2) map.set(fields[i], fields[i + 1]);
    return map;
  };
  const showStates = () => {
    const now = current(), panel = $('kp-states');
    panel.replaceChildren();
    tracks.forEach((track, t) => {
      panel.append(make('h2', { textContent: say.states + (tracks.length > 1 ? ' · ' + track.name : '') }));
      track.nodes.forEach((n) => {
        const list = history(t, n), at = upTo(list, now, (s) => s.since);
        const fields = make('div', { className: 'kp-fields' });
        const row = make('section', {}, make('b', { textContent: 'p' + n }), fields);
        const down = downs.get(t + ':' + n) || [], d = upTo(down, now, (s) => s[0]);
        if (d >= 0 && down[d][1]) fields.append(make('span', { className: 'kp-down', textContent: '✗ ' + say.down }));
        if (now >= 0 && steps[now].t === t && steps[now].n === n) row.className = 'kp-now';
        if (at < 0) {
          fields.append(make('span', { textContent: say.unknown }));
        } else {
          const fresh = list[at].since === now && now >= 0;
          const old = at > 0 ? pairs(list[at - 1].fields) : new Map();
          for (const [name, value] of pairs(list[at].fields)) {
            const field = make('code');
            if (word(name)) field.append(word(name) + ': ');
            if (fresh && old.get(name) !== value) {
              field.className = 'kp-changed';
              if (old.has(name)) field.append(make('del', { textContent: word(old.get(name)) }));
            }
            field.append(word(value));
            fields.append(field);
          }
        }
        panel.append(row);
      });
    });
  };

  // A chosen message, with all that could have caused it and all it could have caused.
  let chosen = -1;
  const choose = (index) => {
    chosen = index;
    const panel = $('kp-message');
    panel.hidden = index < 0;
    const classes = ['kp-past', 'kp-future', 'kp-dim', 'kp-chosen'];
    [...points, ...arrows].forEach(({ it }) => it.classList.remove(...classes));
    if (index < 0) return;
    const m = messages[index];
    const sent = m.sent === undefined || m.sent === null ? [] : [m.sent];
    // A message of the application is sent by no step; its cause is its sender's.
    const roots = sent.filter((i) => steps[i].p);
    m.received.forEach((i) => { if (!roots.length && steps[i].c !== undefined) roots.push(steps[i].c); });
    const past = reach(roots, before), future = reach(m.received, after);
    const time = (i) => word(steps[i].at) + ' ' + tracks[m.t].time;
    const fates = m.received.map((i) => say.got + ' ' + time(i));
    if (typeof m.lost === 'number') fates.push(say.lost + ' ' + time(m.lost));
    if (!fates.length) fates.push(say.flying);
    panel.replaceChildren(
      make('div', {}, make('b', { textContent: say.message + ' ' + m.id + '  p' + m.from + ' → p' + m.to })),
      make('code', { textContent: word(m.w) }),
      make('div', { textContent: [...sent.map((i) => say.sent + ' ' + time(i)), ...fates].join(' · ') }),
      make('div', {},
        make('span', { className: 'kp-p', textContent: past.size + ' ' + say.past }), ' · ',
        make('span', { className: 'kp-f', textContent: future.size + ' ' + say.future })));
    points.forEach(({ it, step }) => {
      const same = steps[step].t === m.t;
      it.classList.add(same && past.has(step) ? 'kp-past' : same && future.has(step) ? 'kp-future' : 'kp-dim');
    });
    arrows.forEach(({ it, message }) => {
      const a = messages[message];
      if (message === index) it.classList.add('kp-chosen');
      else if (a.t === m.t && a.received.some((i) => past.has(i))) it.classList.add('kp-past');
      else if (a.t === m.t && future.has(a.sent)) it.classList.add('kp-future');
      else it.classList.add('kp-dim');
    });
  };

  const visible = (box, from, to) => {
    if (to > box.scrollTop + box.clientHeight || from < box.scrollTop) {
      box.scrollTop = Math.max(0, from - box.clientHeight / 2);
    }
  };
  let marked = null;
  const show = () => {
    const now = current();
    if (marked) marked.removeAttribute('aria-current');
    marked = position > 0 ? items[position - 1] : null;
    if (marked) {
      marked.setAttribute('aria-current', 'step');
      visible(story, marked.offsetTop - story.offsetTop, marked.offsetTop - story.offsetTop + marked.offsetHeight);
    } else {
      story.scrollTop = 0;
    }
    const x = now >= 0 ? steps[now].x : told.length ? steps[told[0]].x - 12 : 0;
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    if (x < picture.scrollLeft + 60 || x > picture.scrollLeft + picture.clientWidth - 60) {
      picture.scrollLeft = x - picture.clientWidth / 2;
    }
    points.forEach(({ it, step }) => {
      it.classList.toggle('kp-later', step > now);
      it.classList.toggle('kp-here', step === now);
    });
    arrows.forEach(({ it, message }) => {
      const m = messages[message];
      const end = m.received.length ? m.received[0] : m.lost;
      it.classList.toggle('kp-later', m.sent > now);
      it.classList.toggle('kp-flying', m.sent <= now && (typeof end !== 'number' || end > now));
    });
    slide.value = position;
    first.disabled = back.disabled = position === 0;
    next.disabled = last.disabled = position === told.length;
    where.textContent = position === 0 ? say.begin
      : say.step + ' ' + position + ' ' + say.of + ' ' + told.length + ' · ' + word(steps[now].at)
        + ' ' + tracks[steps[now].t].time;
    showStates();
  };
  const go = (to) => {
    position = Math.max(0, Math.min(told.length, Math.round(to) || 0));
    show();
    try { window.history.replaceState(null, '', '#' + position); } catch { /* some viewers forbid it */ }
  };

  let timer = null;
  const toggle = (on = timer === null) => {
    clearInterval(timer);
    timer = null;
    if (on) {
      if (position === told.length) go(0);
      timer = setInterval(() => { position < told.length ? go(position + 1) : toggle(false); }, 700);
    }
    play.textContent = timer === null ? '▶▶' : '⏸';
    play.title = timer === null ? say.play : say.stop;
    play.setAttribute('aria-label', play.title);
  };

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const acts = {
      ArrowRight: () => go(position + 1), ArrowLeft: () => go(position - 1),
      Home: () => go(0), End: () => go(told.length), ' ': () => toggle(), Escape: () => choose(-1),
    };
    const act = acts[event.key];
    if (!act || (event.key === ' ' && event.target.tagName === 'BUTTON')) return;
    event.preventDefault();
    act();
  });
  picture.addEventListener('click', (event) => {
    const arrow = event.target.closest('[data-message]'), point = event.target.closest('[data-entry]');
    if (arrow) return choose(arrows.find(({ it }) => it === arrow).message);
    choose(-1);
    if (!point) return;
    const step = points.find(({ it }) => it === point).step;
    go(told.indexOf(step) + 1);
  });
  window.addEventListener('hashchange', () => go(Number(location.hash.slice(1))));

  go(Number(location.hash.slice(1)) || 0);
})();
