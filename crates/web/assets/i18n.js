// The labels of the page in English and German. Data sheets and stories come from the catalog, in English.

const WORDS = {
  run: ['Run', 'Lauf'], race: ['Race', 'Wettlauf'], check: ['Check', 'Prüfung'],
  skip: ['To the diagram', 'Zum Diagramm'], problem: ['Problem', 'Problem'], algorithm: ['Algorithm', 'Algorithmus'],
  nodes: ['Nodes', 'Knoten'], topology: ['Topology', 'Topologie'], ids: ['Ids', 'Kennungen'], initiators: ['Initiators', 'Initiatoren'],
  down: ['crashed', 'abgestürzt'], 'down-field': ['Down from the start', 'Von Anfang an abgestürzt'], set: ['Variant', 'Variante'], mistake: ['Mistake', 'Fehler'], none: ['none', 'keiner'],
  entries: ['Requests per node', 'Anforderungen je Knoten'], requests: ['Requests by node', 'Anforderungen einzeln'], script: ['Request times', 'Zeiten der Anforderungen'], load: ['Load', 'Last'], think: ['Pause before a request', 'Pause vor Anforderung'], hold: ['Hold time', 'Haltezeit'],
  'app-messages': ['App messages', 'App-Nachrichten'], skew: ['Skew (Zipf)', 'Schiefe (Zipf)'], service: ['Service time of a node', 'Bedienzeit eines Knotens'], bandwidth: ['Bytes per T', 'Bytes je T'], 'warm-up': ['Warm-up entries', 'Eintritte zum Einschwingen'], delay: ['Delay', 'Laufzeit'], fifo: ['Channels keep order', 'Kanäle erhalten Reihenfolge'], loss: ['Loss', 'Verlust'], duplicate: ['Duplicates', 'Verdopplung'],
  'detect-after': ['Crash known after', 'Absturz bekannt nach'], seed: ['Seed', 'Startwert'], 'time-limit': ['Time limit', 'Zeitgrenze'], 'step-limit': ['Step limit', 'Schrittgrenze'],
  group: ['Group', 'Gruppe'], workload: ['Workload', 'Last'], network: ['Network', 'Netz'], limits: ['Limits', 'Grenzen'], default: ['default', 'Vorgabe'],
  'run-now': ['Run', 'Ausführen'], 'check-now': ['Check every run', 'Alle Läufe prüfen'], cancel: ['Cancel', 'Abbrechen'], racers: ['In the race (2–4)', 'Im Wettlauf (2–4)'],
  first: ['To the start', 'Zum Anfang'], back: ['One step back', 'Einen Schritt zurück'], play: ['Play', 'Abspielen'], stop: ['Stop', 'Anhalten'], next: ['One step forward', 'Einen Schritt vor'], last: ['To the end', 'Zum Ende'],
  'prev-event': ['Previous important event', 'Voriges wichtiges Ereignis'], 'next-event': ['Next important event', 'Nächstes wichtiges Ereignis'], speed: ['Speed', 'Tempo'], time: ['Time', 'Zeit'],
  begin: ['start', 'Beginn'], step: ['step', 'Schritt'], of: ['of', 'von'],
  story: ['Story', 'Ablauf'], schedule: ['Schedule', 'Störplan'], sheet: ['Data sheet', 'Steckbrief'], file: ['File', 'Datei'], 'scenario-file': ['Scenario file', 'Szenariodatei'], exercises: ['Exercises', 'Übungen'], lanes: ['Lanes', 'Spuren'],
  lamps: ['Properties', 'Eigenschaften'], meter: ['Against the formula', 'Gegen die Formel'], states: ['States', 'Zustände'], message: ['Message', 'Nachricht'], node: ['Node', 'Knoten'], what: ['What happens', 'Was geschieht'],
  sent: ['sent', 'gesendet'], arrived: ['arrived', 'angekommen'], lost: ['lost', 'verloren'], doubled: ['doubled', 'verdoppelt'], flying: ['still on its way', 'noch unterwegs'], past: ['possible causes', 'mögliche Ursachen'], future: ['possible effects', 'mögliche Folgen'], vector: ['vector time', 'Vektorzeit'],
  waiting: ['waits', 'wartet'], inside: ['in critical section', 'im kritischen Abschnitt'], leading: ['leads', 'führt'], following: ['follows', 'folgt'], paused: ['paused', 'pausiert'], idle: ['idle', 'untätig'],
  break: ['Inject a fault', 'Störung einfügen'], crash: ['Crash', 'Abstürzen lassen'], pause: ['Pause 5 T', '5 T pausieren'], restart: ['Restart', 'Neu starten'], lose: ['Lose the message', 'Nachricht verlieren'], late: ['Delay it by 5 T', 'Um 5 T verzögern'], twice: ['Deliver twice', 'Doppelt zustellen'], cut: ['Cut the channel from here on', 'Kanal ab hier trennen'], 'cut-link': ['Cut', 'Trennen'],
  'break-at': ['at the cursor', 'an der Zeitmarke'], 'no-break': ['Faults cannot be added to a witness. Open its scenario as a run.', 'Einem Gegenbeispiel lassen sich keine Störungen hinzufügen. Öffne sein Szenario als Lauf.'],
  'schedule-empty': ['No faults yet. Click a node, a message or a link, or enter a fault here.', 'Noch keine Störungen. Klicke einen Knoten, eine Nachricht oder eine Verbindung an, oder trage hier eine Störung ein.'],
  add: ['Add', 'Hinzufügen'], remove: ['Remove', 'Entfernen'], 'remove-all': ['Remove all', 'Alle entfernen'], copy: ['Copy', 'Kopieren'], copied: ['Copied', 'Kopiert'], command: ['Command line', 'Kommandozeile'], forms: ['Syntax of faults', 'Syntax der Störungen'],
  share: ['Copy link', 'Link kopieren'], 'share-hint': ['The link contains the whole run: algorithm, parameters, seed, faults and cursor. The part after # works in every workbench.', 'Der Link enthält den ganzen Lauf: Algorithmus, Parameter, Startwert, Störungen und Zeitmarke. Der Teil nach # funktioniert in jeder Werkbank.'],
  export: ['Export …', 'Exportieren …'], theme: ['Dark or light', 'Dunkel oder hell'], language: ['Sprache: Deutsch', 'Language: English'], help: ['Help and keys', 'Hilfe und Tasten'], close: ['Close', 'Schließen'],
  ok: ['no violation', 'keine Verletzung'], violated: ['violated', 'verletzt'], stuck: ['stuck', 'verklemmt'], unfinished: ['cut off', 'abgeschnitten'], exhausted: ['every run explored, no violation', 'jeder Lauf untersucht, keine Verletzung'], bounded: ['undecided: a limit was reached', 'unentschieden: eine Grenze wurde erreicht'],
  'waits-forever': ['waits for ever', 'wartet für immer'], 'wait-forever': ['wait for ever', 'warten für immer'], holds: ['holds', 'gilt'], 'broken-at': ['violated at', 'verletzt bei'], assumption: ['Assumption violated', 'Annahme verletzt'], 'in-end': ['at the end', 'am Ende'],
  idea: ['Idea', 'Idee'], source: ['Source', 'Quelle'], 'runs-on': ['Runs on a', 'Läuft auf'], assumes: ['Assumes', 'Setzt voraus'], promises: ['Guarantees', 'Garantiert'], costs: ['Costs', 'Kosten'], variants: ['Variants', 'Varianten'], mistakes: ['Mistakes', 'Fehler'], winner: ['Winner', 'Gewinner'], fence: ['Fencing token', 'Zaunmarke'],
  'exercise-intro': ['Each mistake comes from a published source. Let the checker find a run that shows it; then find out why the algorithm fails.', 'Jeder Fehler stammt aus einer veröffentlichten Quelle. Lass die Prüfung einen Lauf finden, der ihn zeigt; finde dann heraus, warum der Algorithmus versagt.'], 'no-exercise': ['This algorithm has no known mistakes.', 'Dieser Algorithmus hat keine bekannten Fehler.'], find: ['Find a run', 'Lauf finden'], solution: ['Explanation', 'Erklärung'], breaks: ['violates', 'verletzt'],
  budgets: ['Options of the check', 'Optionen der Prüfung'], 'b-crash': ['Crashes', 'Abstürze'], 'b-restart': ['Restarts', 'Neustarts'], 'b-loss': ['Losses', 'Verluste'], 'b-duplicate': ['Duplicates', 'Verdopplungen'], synchronous: ['Synchronous', 'Synchron'], properties: ['Judged properties', 'Geprüfte Eigenschaften'], 'max-states': ['State limit', 'Höchstzahl der Zustände'],
  searching: ['Searching', 'Suche läuft'], 'states-n': ['states', 'Zustände'], depth: ['depth', 'Tiefe'], shortest: ['steps of a shortest witness', 'Schritte eines kürzesten Gegenbeispiels'], loops: ['repeats for ever from step', 'wiederholt sich für immer ab Schritt'],
  'as-run': ['Open as a run', 'Als Lauf öffnen'], 'lucky': ['One run is no proof.', 'Ein Lauf ist kein Beweis.'], 'check-this': ['Check every run of a small group', 'Alle Läufe einer kleinen Gruppe prüfen'],
  messages: ['messages', 'Nachrichten'], messages_per_entry: ['messages per entry', 'Nachrichten je Eintritt'], sync_delay: ['hand-over', 'Übergabe'], entry_delay: ['entry delay', 'Eintrittsverzögerung'], link: ['Link', 'Verbindung'], links: ['links', 'Verbindungen'],
  'not-apply': ['does not apply here', 'gilt hier nicht'], 'zoom-in': ['Zoom in', 'Vergrößern'], 'zoom-out': ['Zoom out', 'Verkleinern'], 'zoom-fit': ['Show all', 'Alles zeigen'], up: ['Move up', 'Nach oben'], 'and-more': ['and more nodes; choose one in the diagram', 'und weitere Knoten; einen im Diagramm wählen'], shown: ['Kinds of messages', 'Nachrichtenarten'],
  diagram: ['Space–time diagram', 'Raum-Zeit-Diagramm'], events: ['events', 'Ereignisse'], 'nothing-yet': ['nothing yet', 'noch nichts'],
  live: ['Live', 'Live'], 'live-none': ['No agent is connected. Start agents and name their sockets:', 'Kein Agent ist verbunden. Starte Agenten und nenne ihre Sockets:'], 'live-history': ['The last % seconds, from the flight recorders', 'Die letzten % Sekunden, aus den Flugschreibern'],
  gone: ['not reachable', 'nicht erreichbar'], 's-primary': ['has a majority', 'mit Mehrheit'], 's-forming': ['forming', 'im Aufbau'], 's-blocked': ['no majority', 'ohne Mehrheit'], 's-out': ['outside the group', 'außerhalb der Gruppe'], view: ['view', 'Sicht'], heard: ['reachable', 'erreichbar'], needed: ['needed for a majority', 'für eine Mehrheit nötig'], clients: ['clients', 'Klienten'],
  members: ['Members', 'Mitglieder'], leads: ['leads', 'führt'], connected: ['connected', 'verbunden'], 'last-heard': ['last message', 'letzte Nachricht'], entering: ['entering', 'tritt ein'], suspected: ['suspected', 'verdächtigt'], yes: ['yes', 'ja'], no: ['no', 'nein'],
  locks: ['Locks and elections', 'Sperren und Wahlen'], 'nothing-held': ['No lock is held or requested.', 'Keine Sperre ist vergeben oder angefordert.'], name: ['name', 'Name'], holder: ['holder', 'Inhaber'], queue: ['queue', 'Schlange'], token: ['token', 'Marke'], safe: ['valid for', 'gültig für'], 'k-lock': ['lock', 'Sperre'], 'k-semaphore': ['semaphore', 'Semaphor'], 'k-election': ['election', 'Wahl'],
};

const stored = (() => { try { return localStorage.getItem('language'); } catch { return null; } })();
let german = (stored || navigator.language || 'en').toLowerCase().startsWith('de');

/** The word for `key` in the language of the page. @param {string} key */
export const t = (key) => (WORDS[key] || [key, key])[german ? 1 : 0];
export const isGerman = () => german;

/** @param {boolean} to */
export function setGerman(to) {
  german = to;
  document.documentElement.lang = german ? 'de' : 'en';
  try { localStorage.setItem('language', german ? 'de' : 'en'); } catch { /* the choice is not kept */ }
}
