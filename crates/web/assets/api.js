// Requests to the server, and its answers.

const token = (() => {
  const given = new URLSearchParams(location.search).get('token');
  try {
    if (given) sessionStorage.setItem('token', given);
    return given || sessionStorage.getItem('token') || '';
  } catch { return given || ''; }
})();

/** @param {string} path @param {any} [body] @param {AbortSignal} [signal] */
async function ask(path, body, signal) {
  const headers = { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' };
  const answer = await fetch('/api/' + path, body === undefined ? { headers, signal }
    : { method: 'POST', headers, body: JSON.stringify(body), signal });
  if (answer.ok) return answer;
  let why = answer.status + ' ' + answer.statusText;
  try { why = (await answer.json()).error || why; } catch { /* no JSON: the status says it */ }
  throw new Error(why);
}

export const catalog = async () => (await ask('catalog')).json();

/** What the agents of a running group report. */
export const live = async () => (await ask('live')).json();

/** @param {any[]} scenarios @param {AbortSignal} [signal] */
export const run = async (scenarios, signal) => (await ask('run', { scenarios }, signal)).json();

/**
 * @param {any} request scenario and budgets
 * @param {(progress: any) => void} news
 * @param {AbortSignal} signal ends the check on the server, too
 */
export async function check(request, news, signal) {
  const answer = await ask('check', request, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', last = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop() || '';
    for (const line of lines.filter(Boolean)) {
      last = JSON.parse(line);
      if (last.progress) news(last.progress);
    }
  }
  if (!last || last.progress) throw new Error('the check broke off');
  if (last.error) throw new Error(last.error);
  return last;
}

/** @param {any} request */
export async function download(request) {
  const png = request.form === 'png';
  const answer = await ask('export', png ? { ...request, form: 'svg' } : request);
  const named = /filename="([^"]+)"/.exec(answer.headers.get('Content-Disposition') || '');
  const name = named ? named[1] : 'run';
  const content = png ? await pngOf(await answer.blob()) : await answer.blob();
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = png ? name.replace(/svg$/, 'png') : name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The largest picture that every browser can paint, in points.
const MOST_POINTS = 8192 * 8192;

/** Paints an SVG picture, twice as large where that fits. */
async function pngOf(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  try {
    await image.decode();
  } finally {
    URL.revokeObjectURL(image.src);
  }
  const { naturalWidth: width, naturalHeight: height } = image;
  const scale = 4 * width * height <= MOST_POINTS ? 2 : 1;
  const canvas = Object.assign(document.createElement('canvas'), { width: width * scale, height: height * scale });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  const points = await new Promise((done) => canvas.toBlob(done, 'image/png'));
  if (!points) throw new Error('this picture is too large for PNG: export it as SVG');
  return points;
}
