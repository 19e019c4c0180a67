// Takes from answers what differs from run to run: versions, uids, times, ages.

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g
const AGE = /^(\d+[smhdy]){1,2}$/

const normalText = (text: string): string =>
  AGE.test(text)
    ? '<age>'
    : text
        .replaceAll(UUID, '<uid>')
        .replaceAll(TIME, '<time>')
        .replaceAll(/(does not match the ResourceVersion in record \()\d+/g, '$1<version>')
        .replaceAll(/(resource version: )\d+(, current: | \()\d+/gi, '$1<version>$2<version>')

const FIELDS: Record<string, string> = { resourceVersion: '<version>', continue: '<continue>', uid: '<uid>' }

/** Times that a case itself wrote stay as they are where the field is not the server's. */
export const normal = (value: unknown, field = ''): unknown => {
  if (typeof value === 'string') return value !== '' && FIELDS[field] ? FIELDS[field] : normalText(value)
  if (Array.isArray(value)) {
    const items = value.map(item => normal(item))
    // The order in which the real server finds faults is not fixed, and some it finds twice.
    return field === 'causes'
      ? items
          .filter((item, at) => !items.slice(0, at).some(other => JSON.stringify(other) === JSON.stringify(item)))
          .toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
      : items
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  const result = Object.fromEntries(entries.map(([key, item]) => [key, normal(item, key)]))
  if ((Array.isArray(result['causes']) && result['causes'].length > 1) || entries.some(([key]) => key === 'details')) {
    if (typeof result['message'] === 'string') result['message'] = normalMessage(result['message'])
  }
  return result
}

/** `… is invalid: [b, a]` as a sorted list. */
const normalMessage = (message: string): string => {
  const [, head, list] = /^(.* is invalid: )\[(.*)\]$/s.exec(message) ?? []
  if (head === undefined || list === undefined) return message
  return `${head}[${list
    .split(/, (?=[a-z<][\w.[\]<>]*: )/)
    .toSorted()
    .join(', ')}]`
}

/** Some fields of an object by their paths, for objects that the real server fills with much more. */
export const pick = (object: any, ...paths: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    paths.map(path => [path, path.split('.').reduce<any>((at, part) => (at === undefined || at === null ? undefined : at[part]), object)]),
  )
