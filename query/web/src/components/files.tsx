// A list as a file: all of it, as of the block that the page is about.
import { type Params, type PathWith, type QueryOf, url } from "../api"
import { AS_OF, asOf, usePlace } from "../router"

/** Lists that are files too. */
type List = PathWith<"format"> & PathWith<typeof AS_OF>

interface Props<P extends List> {
  path: P
  /** What the list is of, and its filters without its pages. */
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
