// A table, which becomes a card per row on a narrow screen, and the pages of a list. The page and the order are in
// the address bar.
import type { ComponentChildren } from "preact"
import type { Asked } from "../answers"
import { count, group } from "../format"
import { here, usePlace } from "../router"
import type { Meta } from "../types"
import { Empty, Shown } from "./state"

export interface Column<Row> {
  title: string
  /** Right-aligned, for amounts. */
  number?: boolean
  /** Text of any length, which is wrapped. */
  long?: boolean
  /** The name by which the API sorts by this column. */
  sort?: string
  cell: (row: Row) => ComponentChildren
}

interface Props<Row> {
  caption: string
  columns: Column<Row>[]
  rows: Row[]
  id: (row: Row) => string
  /** The current order of the rows, if it can be chosen. */
  sorted?: { by: string; order: "asc" | "desc" }
  /** A class for a row that should stand out. */
  mark?: (row: Row) => string | undefined
}

export function Table<Row>({ caption, columns, rows, id, sorted, mark }: Props<Row>) {
  const place = usePlace()
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table class={sorted === undefined ? "" : "sorted"}>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => {
              const now = sorted !== undefined && column.sort === sorted.by ? sorted.order : undefined
              return (
                <th key={column.title} scope="col" class={column.number ? "number" : ""} aria-sort={now === undefined ? undefined : now === "asc" ? "ascending" : "descending"}>
                  {sorted !== undefined && column.sort !== undefined ? (
                    <a class="sort" href={here(place, { sortBy: column.sort, sortOrder: now === "desc" ? "asc" : "desc", page: null })}>
                      {column.title}
                      <span aria-hidden="true" class="arrow">{now === undefined ? "↕" : now === "asc" ? "↑" : "↓"}</span>
                    </a>
                  ) : (
                    column.title
                  )}
                </th>
              )
            })}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)} class={mark?.(row)}>
              {columns.map((column) => (
                <td key={column.title} class={`${column.number ? "number" : ""} ${column.long ? "long" : ""}`} data-label={column.title}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Links to the pages of a list; parameter is the name of the page number in the address bar. */
export function Pages({ meta, parameter, what }: { meta: Meta; parameter: string; what: string }) {
  const place = usePlace()
  if (meta.totalPages <= 1 && meta.page === 1) return <p class="pages faint">{count(meta.total, what)}</p>
  const to = (page: number) => here(place, { [parameter]: page === 1 ? null : page })
  return (
    <nav class="pages" aria-label={`Pages of ${what}s`}>
      {meta.page > 1 ? <a href={to(Math.min(meta.page - 1, Math.max(1, meta.totalPages)))}>Previous page</a> : null}
      <span>
        Page {group(String(meta.page))} of {group(String(meta.totalPages))} · {count(meta.total, what)}
      </span>
      {meta.hasNextPage ? <a href={to(meta.page + 1)}>Next page</a> : null}
    </nav>
  )
}

interface PagedProps<Row> {
  asked: Asked<Row[], Meta>
  /** What is shown instead of an empty list. */
  empty: ComponentChildren
  /** The name of the page number in the address bar. */
  parameter: string
  /** What a row is, in the singular. */
  what: string
  /** Shown below the list, for example its links to files. */
  below?: ComponentChildren
  children: (rows: Row[]) => ComponentChildren
}

/** A page of a list, with links to the others. */
export function Paged<Row>({ asked, empty, parameter, what, below, children }: PagedProps<Row>) {
  return (
    <Shown asked={asked}>
      {(rows, meta) =>
        meta.total === 0 ? (
          <Empty>{empty}</Empty>
        ) : (
          <>
            {children(rows)}
            <Pages meta={meta} parameter={parameter} what={what} />
            {below}
          </>
        )
      }
    </Shown>
  )
}

/** The page number of a list in the address bar. */
export function pageOf(query: URLSearchParams, parameter: string): number {
  const page = Number(query.get(parameter) ?? "1")
  return Number.isInteger(page) && page >= 1 ? page : 1
}
