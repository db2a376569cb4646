// Journeys through the workbench: what a person does, and what there is to be seen then.
//
// Started by tests/it/browser.rs with KONKLAVE_LINK (the address), KONKLAVE_SHOTS (where pictures
// go) and KONKLAVE_CHROMIUM. Prints one line a journey; the exit code says whether all went well.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const link = process.env.KONKLAVE_LINK, shots = process.env.KONKLAVE_SHOTS, only = process.env.KONKLAVE_JOURNEY;
assert.ok(link && shots, 'KONKLAVE_LINK and KONKLAVE_SHOTS say where and whereto');
mkdirSync(shots, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), 'konklave-browser-'));
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.KONKLAVE_CHROMIUM || '/usr/bin/chromium', headless: true, args: flags,
  viewport: { width: 1280, height: 720 }, locale: 'en-GB', acceptDownloads: true, colorScheme: 'light', reducedMotion: 'reduce',
});

const pack = (state) => '#' + Buffer.from(JSON.stringify(state)).toString('base64url');
const open = (scenario, more = {}) => link + pack({ v: 1, mode: 'run', scenario, ...more });
const ready = (page) => page.waitForFunction(() => window.konklave?.shown && document.documentElement.dataset.ready);
/** Waits until another run than `id` is shown. */
const another = (page, id) => page.waitForFunction((old) => document.documentElement.dataset.ready !== old, id);
const shownId = (page) => page.evaluate(() => document.documentElement.dataset.ready);
const text = (page, selector) => page.locator(selector).innerText();
const where = (page) => text(page, '#where');
/** Clicks something in the diagram where it is drawn. */
const click = async (page, what) => {
  const at = await page.evaluate((it) => window.konklave.diagram.locate(it), what);
  await page.mouse.click(at.x, at.y);
};
const shot = (page, name) => page.screenshot({ path: join(shots, name + '.png') });

/**
 * What a frame costs while the cursor goes from end to end, in ms of the page's processor time: frames
 * wait for their turn on a busy machine. The quickest of up to three passes, as what others do on the
 * same core costs us caches.
 */
const frameCost = async (page, events, goal) => {
  const inspector = await context.newCDPSession(page);
  await inspector.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () => 1000 * (await inspector.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value;
  let best = { median: Infinity, cost: Infinity };
  for (let pass = 0; pass < 3 && best.cost > goal; pass += 1) {
    const all = [];
    for (let i = 0; i <= 60; i += 1) {
      const before = await spent();
      await page.evaluate((p) => new Promise((done) => { window.konklave.go(p); requestAnimationFrame(() => setTimeout(done)); }), Math.round(events * i / 60));
      all.push(await spent() - before);
    }
    all.sort((a, b) => a - b);
    const cost = all[Math.floor(all.length * 0.95)];
    if (cost < best.cost) best = { median: all[30], cost };
  }
  return best;
};

const journeys = {
  async 'first run'(page) {
    const begin = Date.now();
    await page.goto(link);
    await page.waitForSelector('#settings select');
    const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null);
    await ready(page);
    console.log('  first paint after', painted === null ? '?' : Math.round(painted), 'ms, first run shown after', Date.now() - begin, 'ms');
    assert.match(await text(page, '#verdict'), /no violation/);
    assert.match(await where(page), /^start · \d+ events$/);
    assert.equal(await page.inputValue('#setting-algorithm'), 'mutex/ricart-agrawala');
    await page.click('[data-tab=sheet]');
    assert.match(await text(page, '#page'), /Ricart.*Agrawala/s);
    await page.click('[data-tab=story]');
    await page.keyboard.press('End');
    await page.waitForFunction(() => document.querySelector('#where').textContent.startsWith('step'));
    await page.waitForFunction(() => /✓/.test(document.querySelector('[data-metric=messages_per_entry]')?.textContent));
    assert.match(await text(page, '[data-metric=messages_per_entry]'), /4\s*[=≤]\s*4/, '2(n-1) messages an entry');
    await page.selectOption('#setting-problem', 'election');
    await page.waitForFunction(() => window.konklave.shown.tracks[0].name.startsWith('election/'));
    assert.match(await text(page, '#verdict'), /no violation/);
    await shot(page, '01-first-run');
  },

  async 'step forward and back'(page) {
    await page.goto(open({ algorithm: 'mutex/ricart-agrawala', nodes: 3, entries: 2 }));
    await ready(page);
    await page.click('#next');
    await page.waitForFunction(() => /^step 1 of/.test(document.querySelector('#where').textContent));
    const states = await text(page, '#inspector');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => /^step 3 of/.test(document.querySelector('#where').textContent));
    assert.notEqual(await text(page, '#inspector'), states);
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction(() => /^step 1 of/.test(document.querySelector('#where').textContent));
    assert.equal(await text(page, '#inspector'), states, 'back is where one was');
    await page.keyboard.press('Shift+ArrowRight');
    await page.waitForFunction(() => document.querySelector('.badge.inside'));
    assert.ok(await page.locator('.changed').count() > 0, 'what changed is marked');
    await page.keyboard.press('m');
    await page.waitForSelector('#message');
    assert.match(await text(page, '#message'), /possible causes/);
    await shot(page, '02-step-back');
    await page.keyboard.press('Escape');
    await page.selectOption('#speed', '32');
    await page.keyboard.press('Home');
    await page.click('#play');
    await page.waitForFunction(() => window.konklave.position === window.konklave.shown.last, null);
  },

  async 'crash by click'(page) {
    await page.goto(open({ algorithm: 'mutex/central', nodes: 4, entries: 2 }, { at: 6 }));
    await ready(page);
    const id = await shownId(page);
    const time = await page.evaluate(() => window.konklave.timeAt(window.konklave.track()));
    await click(page, { node: 0 });
    await page.click('[data-state="0"] [data-break=crash]');
    await another(page, id);
    assert.deepEqual(await page.evaluate(() => window.konklave.settings.scenario.faults), ['crash:0@' + time]);
    assert.equal(await page.inputValue('[data-fault="0"]'), 'crash:0@' + time, 'the click is in the schedule');
    assert.match(await text(page, '#command'), new RegExp('--fault crash:0@' + time.replace('.', '\\.')));
    assert.match(await text(page, '#toml'), /faults = \["crash:0@/);
    assert.match(await text(page, '#verdict'), /stuck|violated/);
    await page.keyboard.press('End');
    await page.waitForSelector('[data-state="0"] .badge.down');
    assert.match(await text(page, '#lamps'), /no crashes/);
    await shot(page, '03-crash-by-click');
    const second = await shownId(page);
    await page.fill('[data-fault="0"]', 'boil:0@1');
    await page.press('[data-fault="0"]', 'Enter');
    await page.waitForSelector('#trouble:not([hidden])');
    assert.match(await text(page, '#trouble'), /`boil:0@1` is not a fault/);
    await page.fill('[data-fault="0"]', '');
    await page.press('[data-fault="0"]', 'Enter');
    await another(page, second);
    assert.match(await text(page, '#verdict'), /no violation/, 'without the crash it is as before');
  },

  async 'a lost token'(page) {
    await page.goto(open({ algorithm: 'mutex/suzuki-kasami', nodes: 4 }));
    await ready(page);
    const id = await shownId(page);
    const token = await page.evaluate(() => { const [track] = window.konklave.shown.tracks; return track.messages.find((m) => track.kinds[m.kind] === 'Token').id; });
    await click(page, { message: token });
    await page.waitForSelector('#message');
    assert.match(await text(page, '#message'), /Token/);
    await shot(page, '04a-message');
    await page.click('[data-break=lose]');
    await another(page, id);
    assert.match((await page.evaluate(() => window.konklave.settings.scenario.faults))[0], /^lose:\d>\d\/Token#1$/);
    assert.equal(await page.evaluate((was) => { const [track] = window.konklave.shown.tracks; return track.messages.find((m) => m.id === was).lost >= 0; }, token), true, 'that very message is lost');
    await page.keyboard.press('End');
    assert.match(await text(page, '#verdict'), /stuck.*waits? for ever/);
    await page.waitForSelector('#lamps .broken');
    assert.match(await text(page, '#lamps'), /waits? for ever/);
    await shot(page, '04-lost-token');
  },

  async 'a counterexample'(page) {
    await page.goto(open({ algorithm: 'mutex/ricart-agrawala', nodes: 3 }));
    await ready(page);
    await page.click('[data-mode=check]');
    await page.waitForSelector('[data-exercise]');
    const id = await shownId(page);
    await page.click('[data-exercise=request-clock]');
    await another(page, id);
    await page.waitForFunction(() => /violated/.test(document.querySelector('#verdict').textContent));
    assert.match(await text(page, '#verdict'), /order violated · steps of a shortest witness: \d+/);
    assert.equal(await page.evaluate(() => window.konklave.shown.tracks[0].world), 'check');
    await page.waitForSelector('#lamps .broken');
    assert.match(await where(page), /steps$/);
    await shot(page, '05-counterexample');
    // The right algorithm passes the same check.
    await page.selectOption('#setting-mistake', '');
    await page.click('#go');
    await page.waitForFunction(() => /every run explored/.test(document.querySelector('#verdict').textContent));
  },

  async 'a check is cancelled'(page) {
    await page.goto(open({ algorithm: 'mutex/ricart-agrawala', nodes: 5, entries: 3, fifo: false }, { mode: 'run' }));
    await ready(page);
    await page.click('[data-mode=check]');
    await page.click('#go');
    await page.waitForFunction(() => /\d states/.test(document.querySelector('#progress-text')?.textContent || ''));
    await page.click('#cancel');
    await page.waitForFunction(() => /cut off/.test(document.querySelector('#verdict').textContent));
    await page.click('[data-mode=run]');
    await page.waitForFunction(() => /no violation/.test(document.querySelector('#verdict').textContent));
  },

  async 'a race'(page) {
    await page.goto(open({ algorithm: 'mutex/ricart-agrawala', nodes: 3 }));
    await ready(page);
    const id = await shownId(page);
    await page.click('[data-mode=race]');
    await another(page, id);
    assert.equal(await page.evaluate(() => window.konklave.shown.tracks.length), 3);
    assert.match(await text(page, '#verdict'), /suzuki-kasami: no violation/);
    await page.locator('#slider').focus();
    await page.keyboard.press('End');
    await page.waitForFunction(() => window.konklave.position === window.konklave.shown.last);
    const meter = await text(page, '#meter');
    for (const name of ['ricart-agrawala', 'suzuki-kasami', 'central']) assert.ok(meter.includes(name), meter);
    await page.evaluate(() => window.konklave.go(Math.floor(window.konklave.shown.last / 2)));
    await shot(page, '06-race');
    await page.click('#settings input[value="mutex/central"]');
    await page.waitForFunction(() => window.konklave.shown.tracks.length === 2);
  },

  async 'share link'(page) {
    await page.goto(open({ algorithm: 'mutex/maekawa', nodes: 9, topology: 'complete', delay: 'exponential', seed: 42, faults: ['crash:3@4', 'restart:3@9'] }, { at: 17, lanes: [4, 2], hidden: ['Reply'] }));
    await ready(page);
    await page.keyboard.press('ArrowRight');
    await page.waitForTimeout(500);
    const address = await page.evaluate(() => window.location.href);
    const tell = (it) => it.evaluate(() => ({ position: window.konklave.position, tracks: window.konklave.shown.tracks.map((track) => [track.entries, track.messages, track.command]), lanes: window.konklave.laneOrder(), hidden: [...window.konklave.hidden] }));
    const told = await tell(page);
    assert.equal(told.position, 18);
    const other = await context.newPage();
    await other.goto(address);
    await ready(other);
    assert.deepEqual(await tell(other), told, 'the very same run, at the very same step');
    await shot(other, '07-share-link');
    // Given while the page is open, nonsense gives way to what is shown, at once and when a step was just taken.
    for (const pause of [500, 0]) {
      await other.keyboard.press('ArrowRight');
      await other.waitForTimeout(pause);
      await other.goto(link + '#nonsense');
      await other.waitForFunction(() => window.location.hash !== '#nonsense');
    }
    await other.reload();
    await ready(other);
    assert.deepEqual(await tell(other), { ...told, position: 20 }, 'nonsense changes nothing of what is shown');
    await other.close();
    const fresh = await context.newPage();
    await fresh.goto(link + '#nonsense');
    await ready(fresh);
    assert.match(await text(fresh, '#verdict'), /no violation/, 'nonsense in the address does no harm');
    await fresh.close();
  },

  async 'exports'(page) {
    await page.goto(open({ algorithm: 'mutex/raymond', nodes: 7, topology: 'tree:2' }));
    await ready(page);
    const saved = {};
    for (const form of ['svg', 'png', 'html']) {
      const [download] = await Promise.all([page.waitForEvent('download'), page.selectOption('#export', form)]);
      saved[form] = join(shots, 'export-' + download.suggestedFilename());
      await download.saveAs(saved[form]);
      assert.ok(statSync(saved[form]).size > 2000, form);
    }
    const offline = await context.newPage();
    await offline.route(/^https?:/, (route) => route.abort());
    await offline.goto(pathToFileURL(saved.html).href);
    await offline.click('#kp-next');
    assert.match(await text(offline, '#kp-where'), /^step 1 of \d+/, 'the player works from disk');
    await shot(offline, '08-offline-player');
    await offline.goto(pathToFileURL(saved.svg).href);
    await offline.close();
    await shot(page, '08-raymond');
  },

  async 'German, dark'(page) {
    await page.goto(open({ algorithm: 'election/chang-roberts', nodes: 6, ids: 'random', seed: 3 }));
    await ready(page);
    await page.click('#language');
    await page.click('#theme');
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'de');
    assert.match(await text(page, '#settings'), /Algorithmus.*Knoten.*Topologie/s);
    assert.match(await text(page, '#verdict'), /keine Verletzung/);
    await page.keyboard.press('End');
    await page.waitForFunction(() => /^Schritt \d+ von/.test(document.querySelector('#where').textContent));
    await page.waitForSelector('.badge.leading');
    assert.equal(await text(page, '.badge.leading'), 'führt');
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await shot(page, '09-german-dark');
    await page.click('#theme');
    await page.click('#language');
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'en');
  },

  async 'a channel is cut'(page) {
    await page.goto(open({ algorithm: 'election/chang-roberts', nodes: 5, topology: 'ring' }, { at: 3 }));
    await ready(page);
    const id = await shownId(page);
    await page.locator('[data-link]').first().focus();
    await page.keyboard.press('Enter');
    const cut = page.locator('[data-cut]').first(), which = await cut.getAttribute('data-cut');
    await cut.click();
    await another(page, id);
    assert.match((await page.evaluate(() => window.konklave.settings.scenario.faults))[0], new RegExp('^cut:' + which + '@'));
    assert.equal(await page.evaluate(() => window.konklave.shown.tracks[0].bands.length), 1, 'the cut is drawn');
    await shot(page, '10-cut');
  },

  async 'ten thousand events'(page) {
    await page.goto(open({ algorithm: 'mutex/ricart-agrawala', nodes: 12, entries: 40, delay: 'exponential' }));
    await ready(page);
    const events = await page.evaluate(() => window.konklave.shown.last);
    assert.ok(events >= 10000, events + ' events');
    // The slider is dragged from end to end; every frame is timed.
    const box = await page.locator('#slider').boundingBox();
    await page.evaluate(() => {
      window.frames_ = [];
      let last = performance.now();
      const tick = (now) => { window.frames_.push(now - last); last = now; window.ticking = requestAnimationFrame(tick); };
      window.ticking = requestAnimationFrame(tick);
    });
    await page.mouse.move(box.x + 8, box.y + box.height / 2);
    await page.mouse.down();
    for (let i = 0; i <= 120; i += 1) await page.mouse.move(box.x + 8 + (box.width - 16) * i / 120, box.y + box.height / 2);
    await page.mouse.up();
    const frames = await page.evaluate(() => { cancelAnimationFrame(window.ticking); return window.frames_.slice(2); });
    frames.sort((a, b) => a - b);
    const p95 = frames[Math.floor(frames.length * 0.95)];
    const { median, cost } = await frameCost(page, events, 32);
    console.log('  ' + events + ' events: frames while dragging p95', p95.toFixed(1), 'ms of', frames.length, '; processor time of a frame: median', median.toFixed(1), 'p95', cost.toFixed(1), 'ms');
    // The goal is 32 ms, which a machine with nothing else to do keeps; a core that is shared gets half as much again.
    assert.ok(Math.min(p95, cost) <= 48, 'frames come every ' + p95 + ' ms and take ' + cost + ' ms of processor time');
    assert.ok(p95 <= 1000, 'frames come every ' + p95 + ' ms');
    await shot(page, '11-ten-thousand');
    await page.click('#zoom-fit');
    await page.waitForTimeout(200);
    await shot(page, '11-ten-thousand-all');
  },

  async 'a hundred thousand events'(page) {
    const begin = Date.now();
    await page.goto(open({ algorithm: 'mutex/ricart-agrawala', nodes: 12, entries: 400, delay: 'exponential' }));
    await page.waitForFunction(() => window.konklave?.shown && document.documentElement.dataset.ready, null, { timeout: 120000 });
    const shown = Date.now() - begin;
    const events = await page.evaluate(() => window.konklave.shown.last);
    assert.ok(events >= 100000, events + ' events');
    // Only what is in the window is drawn.
    const drawn = await page.evaluate(() => document.querySelectorAll('*').length);
    assert.ok(drawn < 20000, drawn + ' elements');
    const { median, cost } = await frameCost(page, events, 64);
    console.log('  ' + events + ' events: shown after', shown, 'ms; processor time of a frame: median', median.toFixed(1), 'p95', cost.toFixed(1), 'ms;', drawn, 'elements');
    assert.ok(cost <= 64, 'a frame takes ' + cost + ' ms of processor time');
    await shot(page, '12-hundred-thousand');
  },

  async 'too much, and nonsense'(page) {
    await page.goto(open({ algorithm: 'mutex/ricart-agrawala', nodes: 3 }));
    await ready(page);
    await page.fill('#setting-nodes', '5000');
    await page.press('#setting-nodes', 'Enter');
    await page.waitForSelector('#trouble:not([hidden])');
    assert.match(await text(page, '#trouble'), /5000 nodes are too many for a page/);
    await page.fill('#setting-nodes', '1');
    await page.press('#setting-nodes', 'Enter');
    await page.waitForSelector('#trouble', { state: 'hidden' });
    await page.waitForFunction(() => window.konklave.shown.tracks[0].nodes.length === 1);
    await page.fill('#setting-topology', '/etc/passwd');
    await page.press('#setting-topology', 'Enter');
    await page.waitForSelector('#trouble:not([hidden])');
    assert.match(await text(page, '#trouble'), /file/);
    await page.goto(link.replace(/token=.*/, 'token=guessed'));
    await page.waitForSelector('#trouble:not([hidden])');
    assert.match(await text(page, '#trouble'), /lacks the right token/);
    await page.goto(link + pack({ v: 1, mode: 'live', scenario: {} }));
    await page.waitForSelector('#agents .gone');
    assert.match(await text(page, '#agents'), /no agent listens/);
    return { expected: /400|401|413/ };
  },

  async 'small and large screens'(page) {
    await page.setViewportSize({ width: 1920, height: 1080 });
    await page.goto(open({ algorithm: 'election/extinction', nodes: 12, topology: 'grid:3x4' }, { at: 20 }));
    await ready(page);
    await shot(page, '12-beamer');
    await page.setViewportSize({ width: 900, height: 700 });
    await page.waitForTimeout(200);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'nothing sticks out');
    await shot(page, '12-small');
  },
};

// With agents that run: KONKLAVE_LIVE has the pid of one that may be killed.
const victim = Number(process.env.KONKLAVE_LIVE);
if (victim) {
  journeys['live group with a killed agent'] = async (page) => {
    await page.goto(link + pack({ v: 1, mode: 'live', scenario: {} }));
    await page.waitForFunction(() => document.querySelectorAll('#agents .badge.ok').length === 3);
    assert.equal(await page.locator('#members tr').count(), 4, 'three members and a heading');
    assert.equal(await page.locator('#members').getByText('★').count(), 1, 'one leads');
    await page.waitForFunction(() => /nightly/.test(document.querySelector('#locks')?.textContent || ''));
    assert.match(await text(page, '#locks'), /token \d+/);
    await page.waitForSelector('[data-held=nightly]');
    await page.waitForSelector('[data-sent]', { state: 'attached' });
    await shot(page, '13-live');
    process.kill(victim, 'SIGKILL');
    await page.waitForFunction(() => document.querySelectorAll('#agents .gone').length === 1);
    await page.waitForFunction(() => document.querySelectorAll('#members tr').length === 3, null, { timeout: 20000 });
    assert.equal(await page.locator('#agents .badge.ok').count(), 2, 'two go on');
    await page.waitForSelector('[data-mark=view]', { state: 'attached' });
    await shot(page, '13-live-killed');
    await page.click('#language');
    assert.match(await text(page, '#live'), /mitglieder/i);
    await page.click('[data-mode=run]');
    await ready(page);
    assert.ok(await page.locator('#live').isHidden());
  };
}

let failed = 0;
try {
  for (const [name, journey] of Object.entries(journeys)) {
    if (only && !name.includes(only)) continue;
    const page = await context.newPage(), errors = [];
    page.setDefaultTimeout(60000);
    page.on('console', (message) => { if (message.type() === 'error') errors.push(message.text()); });
    page.on('pageerror', (error) => errors.push(String(error.stack || error)));
    const begin = Date.now();
    try {
      const { expected } = (await journey(page)) || {};
      // The browser reports each refusal of the server as an error: in some journeys that is the point.
      const refused = expected || (name === 'crash by click' ? /400/ : null);
      const bad = errors.filter((error) => !(refused && refused.test(error)));
      assert.deepEqual(bad, [], 'nothing in the console');
      console.log('ok      ' + name + ' (' + (Date.now() - begin) + ' ms)');
    } catch (error) {
      failed += 1;
      await shot(page, 'failed-' + name.replace(/\W+/g, '-')).catch(() => {});
      console.log('FAILED  ' + name + ': ' + (error.stack || error) + '\n' + errors.join('\n'));
    }
    await page.close();
  }
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
