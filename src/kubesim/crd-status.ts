import type { Fields } from './fields.ts'
import { fieldsAt, listAt, textAt, valueAt } from './fields.ts'

/** A CustomResourceDefinition with what the server fills in: names, conversion, and a status that says that it is served. */
export const establishedCrd = (object: Fields, now: string): Fields => {
  const [spec, names] = [fieldsAt(object, 'spec'), fieldsAt(object, 'spec', 'names')]
  const kind = textAt(names, 'kind')
  const acceptedNames = { listKind: `${kind}List`, singular: kind.toLowerCase(), ...names }
  const since = listAt(object, 'status', 'conditions').map(condition => textAt(condition, 'lastTransitionTime'))[0] || now
  const condition = (type: string, reason: string, message: string) => ({
    type,
    status: 'True',
    reason,
    message,
    lastTransitionTime: since,
  })
  return {
    ...object,
    spec: { conversion: { strategy: 'None' }, ...spec, names: acceptedNames },
    status: {
      acceptedNames,
      conditions: [
        condition('NamesAccepted', 'NoConflicts', 'no conflicts found'),
        condition('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
      ],
      storedVersions: listAt(spec, 'versions')
        .filter(version => valueAt(version, 'storage') === true)
        .map(version => textAt(version, 'name')),
    },
  }
}
