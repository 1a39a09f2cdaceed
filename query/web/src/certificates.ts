// The certificates that a partner chooses as files, before they are sent.

/** The largest file, in bytes; the server accepts no longer text. */
const MOST = 64 * 1024

/** The files that were chosen; undefined: none. */
export interface Chosen {
  authorities?: File
  certificate?: File
  key?: File
}

const names: Record<keyof Chosen, string> = { authorities: "the authorities", certificate: "the client certificate", key: "the private key" }

/** What has to be changed before the files can be sent, as a sentence; null: nothing. What is in them, only the server checks. */
export function lacks(chosen: Chosen): string | null {
  const given = (Object.keys(names) as (keyof Chosen)[]).filter((field) => chosen[field] !== undefined)
  if (given.length === 0) return "Choose a file: the authorities, or the client certificate with its private key, or all three."
  if (chosen.certificate !== undefined && chosen.key === undefined) return "The private key of the client certificate is missing: choose its file too."
  if (chosen.key !== undefined && chosen.certificate === undefined) return "The client certificate of the private key is missing: choose its file too."
  for (const field of given) {
    const { name, size } = chosen[field]!
    if (size === 0) return `The file of ${names[field]}, ${name}, is empty: choose another one.`
    if (size > MOST) return `The file of ${names[field]}, ${name}, is larger than 64 KiB: choose one that has only these certificates.`
  }
  return null
}

/** The texts of the files. */
export async function texts(chosen: Chosen): Promise<{ authorities?: string; certificate?: string; key?: string }> {
  const read: { authorities?: string; certificate?: string; key?: string } = {}
  for (const field of Object.keys(names) as (keyof Chosen)[]) {
    const file = chosen[field]
    if (file !== undefined) read[field] = await file.text()
  }
  return read
}
