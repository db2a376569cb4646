// Words, in English and German. Data sheets and stories come from the catalog, in English.

const WORDS = {
  run: ['Run', 'Lauf'], race: ['Race', 'Wettlauf'], check: ['Check', 'Prüfung'],
  skip: ['To the diagram', 'Zum Diagramm'], problem: ['Problem', 'Problem'], algorithm: ['Algorithm', 'Algorithmus'],
  nodes: ['Nodes', 'Knoten'], topology: ['Topology', 'Topologie'], ids: ['Ids', 'Kennungen'], initiators: ['Initiators', 'Initiatoren'],
  down: ['crashed', 'abgestürzt'], 'down-field': ['Down from start', 'Von Anfang aus'], set: ['Variant', 'Variante'], mistake: ['Mistake', 'Fehler'], none: ['none', 'keiner'],
  entries: ['Requests each', 'Wünsche je'], requests: ['Requests list', 'Wünsche einzeln'], script: ['Script', 'Drehbuch'], load: ['Load', 'Last'], think: ['Pause before', 'Pause davor'], hold: ['Time inside', 'Zeit drinnen'],
  'app-messages': ['App messages', 'App-Nachrichten'], delay: ['Delay', 'Laufzeit'], fifo: ['Channels keep order', 'Kanäle erhalten Reihenfolge'], loss: ['Loss', 'Verlust'], duplicate: ['Duplicates', 'Verdopplung'],
  'detect-after': ['Crash known after', 'Absturz bekannt nach'], seed: ['Seed', 'Startwert'], 'time-limit': ['Time limit', 'Zeitgrenze'], 'step-limit': ['Step limit', 'Schrittgrenze'],
  group: ['Group', 'Gruppe'], workload: ['Workload', 'Last'], network: ['Network', 'Netz'], limits: ['Limits', 'Grenzen'], default: ['default', 'Vorgabe'],
  'run-now': ['Run', 'Ausführen'], 'check-now': ['Check every run', 'Alle Läufe prüfen'], cancel: ['Cancel', 'Abbrechen'], racers: ['In the race (2–4)', 'Im Wettlauf (2–4)'],
  first: ['To the begin', 'Zum Anfang'], back: ['One step back', 'Einen Schritt zurück'], play: ['Play', 'Abspielen'], stop: ['Stop', 'Anhalten'], next: ['One step on', 'Einen Schritt vor'], last: ['To the end', 'Zum Ende'],
  'prev-event': ['Previous important event', 'Voriges wichtiges Ereignis'], 'next-event': ['Next important event', 'Nächstes wichtiges Ereignis'], speed: ['Speed', 'Tempo'], time: ['Time', 'Zeit'],
  begin: ['begin', 'Beginn'], step: ['step', 'Schritt'], of: ['of', 'von'],
  story: ['Story', 'Ablauf'], schedule: ['Schedule', 'Störplan'], sheet: ['Data sheet', 'Steckbrief'], file: ['File', 'Datei'], 'scenario-file': ['Scenario file', 'Szenariodatei'], exercises: ['Exercises', 'Übungen'], lanes: ['Lanes', 'Spuren'],
  lamps: ['Properties', 'Eigenschaften'], meter: ['Against the formula', 'Gegen die Formel'], states: ['States', 'Zustände'], message: ['Message', 'Nachricht'], node: ['Node', 'Knoten'], what: ['What happens', 'Was geschieht'],
  sent: ['sent', 'gesendet'], arrived: ['arrived', 'angekommen'], lost: ['lost', 'verloren'], doubled: ['doubled', 'verdoppelt'], flying: ['still on its way', 'noch unterwegs'], past: ['possible causes', 'mögliche Ursachen'], future: ['possible effects', 'mögliche Folgen'], vector: ['vector time', 'Vektorzeit'],
  waiting: ['waits', 'wartet'], inside: ['inside', 'drinnen'], leading: ['leads', 'führt'], following: ['follows', 'folgt'], paused: ['asleep', 'schläft'], idle: ['idle', 'untätig'],
  break: ['Break it', 'Stören'], crash: ['Crash', 'Abstürzen lassen'], pause: ['Pause 5 T', '5 T pausieren'], restart: ['Restart', 'Neu starten'], lose: ['Lose it', 'Verlieren'], late: ['Delay it by 5 T', 'Um 5 T verspäten'], twice: ['Deliver twice', 'Doppelt zustellen'], cut: ['Cut the channel from here on', 'Kanal ab hier trennen'], 'cut-link': ['Cut', 'Trennen'],
  'break-at': ['at the cursor', 'an der Zeitmarke'], 'no-break': ['A witness cannot be disturbed: open its scenario as a run.', 'Ein Gegenbeispiel lässt sich nicht stören: Szenario als Lauf öffnen.'],
  'schedule-empty': ['Nothing goes wrong yet. Click a node, a message or a link, or write a fault here.', 'Noch geht nichts schief. Knoten, Nachricht oder Verbindung anklicken, oder hier eine Störung eintragen.'],
  add: ['Add', 'Hinzufügen'], remove: ['Remove', 'Entfernen'], 'remove-all': ['Remove all', 'Alle entfernen'], copy: ['Copy', 'Kopieren'], copied: ['Copied', 'Kopiert'], command: ['The same on the command line', 'Dasselbe auf der Kommandozeile'], forms: ['Forms of faults', 'Formen von Störungen'],
  share: ['Copy link', 'Link kopieren'], 'share-hint': ['The address holds the whole run: algorithm, parameters, seed, schedule, cursor. What follows # works in every workbench.', 'Die Adresse enthält den ganzen Lauf: Algorithmus, Parameter, Startwert, Störplan, Zeitmarke. Was auf # folgt, gilt in jeder Werkbank.'],
  export: ['Export …', 'Exportieren …'], theme: ['Dark or light', 'Dunkel oder hell'], language: ['Sprache: Deutsch', 'Language: English'], help: ['Help and keys', 'Hilfe und Tasten'], close: ['Close', 'Schließen'],
  ok: ['all is well', 'alles in Ordnung'], violated: ['violated', 'verletzt'], stuck: ['stuck', 'verklemmt'], unfinished: ['cut off', 'abgeschnitten'], exhausted: ['every run was seen, all is well', 'jeder Lauf wurde gesehen, alles in Ordnung'], bounded: ['a bound was reached first', 'eine Grenze wurde zuerst erreicht'],
  'waits-forever': ['wait for ever', 'warten für immer'], holds: ['holds', 'gilt'], 'broken-at': ['broken at', 'verletzt bei'], assumption: ['Assumption broken', 'Annahme verletzt'], 'in-end': ['at the end', 'am Ende'],
  idea: ['Idea', 'Idee'], source: ['Source', 'Quelle'], 'runs-on': ['Runs on a', 'Läuft auf'], assumes: ['Assumes', 'Setzt voraus'], promises: ['Promises', 'Verspricht'], costs: ['Costs', 'Kosten'], variants: ['Variants', 'Varianten'], mistakes: ['Mistakes', 'Fehler'], winner: ['Winner', 'Gewinner'], fence: ['Fence', 'Zaunnummer'],
  'exercise-intro': ['Each is a mistake that a source really made. Let the checker find a run that shows it, then find out why it fails.', 'Jeder ist ein Fehler, den eine Quelle wirklich enthielt. Die Prüfung findet einen Lauf, der ihn zeigt; finde heraus, warum.'], 'no-exercise': ['No known mistakes of this algorithm.', 'Keine bekannten Fehler dieses Algorithmus.'], find: ['Find a run', 'Lauf finden'], solution: ['What is wrong', 'Was falsch ist'], breaks: ['breaks', 'verletzt'],
  budgets: ['What may happen', 'Was geschehen darf'], 'b-crash': ['Crashes', 'Abstürze'], 'b-restart': ['Restarts', 'Neustarts'], 'b-loss': ['Losses', 'Verluste'], 'b-duplicate': ['Duplicates', 'Verdopplungen'], synchronous: ['Synchronous', 'Synchron'], properties: ['Only property', 'Nur Eigenschaft'], 'max-states': ['Most states', 'Höchstens Zustände'],
  searching: ['Searching', 'Suche läuft'], 'states-n': ['states', 'Zustände'], depth: ['depth', 'Tiefe'], shortest: ['A shortest run that breaks it', 'Ein kürzester Lauf, der es verletzt'], loops: ['From here on it repeats for ever, step', 'Ab hier wiederholt es sich für immer, Schritt'],
  'as-run': ['Open as a run', 'Als Lauf öffnen'], 'lucky': ['One run is no proof.', 'Ein Lauf ist kein Beweis.'], 'check-this': ['Check every run of a small group', 'Alle Läufe einer kleinen Gruppe prüfen'],
  messages: ['messages', 'Nachrichten'], messages_per_entry: ['messages per entry', 'Nachrichten je Eintritt'], sync_delay: ['hand-over', 'Übergabe'], entry_delay: ['entry delay', 'Eintrittsverzögerung'], link: ['Link', 'Verbindung'], links: ['links', 'Verbindungen'],
  'not-apply': ['does not apply here', 'gilt hier nicht'], 'zoom-in': ['Zoom in', 'Vergrößern'], 'zoom-out': ['Zoom out', 'Verkleinern'], 'zoom-fit': ['Show all', 'Alles zeigen'], up: ['Move up', 'Nach oben'], 'and-more': ['and more nodes; choose one in the diagram', 'und weitere Knoten; einen im Diagramm wählen'], shown: ['Kinds of messages', 'Nachrichtenarten'],
  diagram: ['Space–time diagram', 'Raum-Zeit-Diagramm'], events: ['events', 'Ereignisse'], 'nothing-yet': ['nothing yet', 'noch nichts'],
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
  try { localStorage.setItem('language', german ? 'de' : 'en'); } catch { /* then it is forgotten */ }
}
