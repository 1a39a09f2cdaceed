// A list as a file: the whole list, at the block of the page.
import { type Params, type PathWith, type QueryOf, url } from "../api"
import { AS_OF, asOf, usePlace } from "../router"

/** Lists that are also available as files. */
type List = PathWith<"format"> & PathWith<typeof AS_OF>

interface Props<P extends List> {
  path: P
  /** What the list is about, and its filters, without its paging. */
  params: Params<P>
}

export function Files<P extends List>({ path, params }: Props<P>) {
  const block = asOf(usePlace())
  const file = (format: QueryOf<List>["format"]) => url(path, { ...params, query: { ...params.query, [AS_OF]: block, format } })
  return (
    <p class="files">
      <a href={file("csv")} download>Export CSV</a>
      <a href={file("parquet")} download>Export Parquet</a>
    </p>
  )
}
