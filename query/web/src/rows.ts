// Whole lists: the files of the API as CSV, which have no last page, read as they arrive.
import { ApiError, type Called, type DataOf, type Params, type PathWith, client, said } from "./api"

/** Lists that are also available as files. */
type List = PathWith<"format">
/** Columns of the file of a list that are fields of its items. */
type ColumnOf<P extends List> = DataOf<P> extends (infer Item)[] ? keyof Item & string : never

/**
 * All rows of a list, in its order, with some columns of each: the text that is in the file, empty for null. Throws an
 * ApiError, also if the file is cut off.
 */
export async function* wholeList<P extends List, Column extends ColumnOf<P>>(path: P, params: Params<P>, columns: Column[]): AsyncGenerator<Record<Column, string>> {
  const call = client.GET(path, { params: { ...params, query: { ...params.query, format: "csv" } }, parseAs: "stream" } as never)
  const { body } = await said(call as Promise<Called<ReadableStream<Uint8Array>>>)
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const records = new Records()
  const cutOff = () => new ApiError("The list was cut off before its end. Try again, at a final block if there was a reorganisation.", 200, "CUT_OFF", null, null, null)
  let places: number[] | null = null // of the columns
  try {
    for (let done = false; !done; ) {
      const piece = await reader.read().catch(() => Promise.reject(cutOff()))
      done = piece.done
      for (const record of records.next(decoder.decode(piece.value, { stream: !done }))) {
        if (places === null) {
          places = columns.map((column) => record.indexOf(column))
          if (places.includes(-1)) throw new ApiError(`The list lacks one of the columns ${columns.join(", ")}. Reload the page.`, 200, "OTHER_COLUMNS", null, null, null)
        } else yield Object.fromEntries(columns.map((column, i) => [column, record[places![i]!]!])) as Record<Column, string>
      }
    }
    if (places === null || !records.complete) throw cutOff()
  } finally {
    await reader.cancel().catch(() => {}) // it may have ended
  }
}

/** Splits the text of a CSV file (RFC 4180) into records, piece by piece. */
export class Records {
  /** The beginning of the next record. */
  #rest = ""

  /** Whether the text so far ends with a record. */
  get complete(): boolean {
    return this.#rest === ""
  }

  /** The records that end in the next piece of the text. */
  next(piece: string): string[][] {
    const records: string[][] = []
    const lines = (this.#rest + piece).split("\r\n")
    const last = lines.pop()!
    let record = ""
    for (const line of lines) {
      record += line
      if ((record.match(/"/g)?.length ?? 0) % 2 === 1) {
        record += "\r\n" // within a field
        continue
      }
      records.push(Array.from(`,${record}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^,]*))/g), ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!))
      record = ""
    }
    this.#rest = record + last
    return records
  }
}
