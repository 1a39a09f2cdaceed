// A list as a file: all of it, as of the block that the page is about.
import { type Query, url } from "../api"
import { AS_OF, asOf, usePlace } from "../router"

interface Props {
  /** The path of the list, and its filters without its pages. */
  path: string
  query?: Query
}

export function Files({ path, query }: Props) {
  const block = asOf(usePlace())
  const file = (format: string) => url(path, { ...query, [AS_OF]: block, format })
  return (
    <p class="files faint">
      All of it as{" "}
      <a href={file("csv")} download>CSV</a> or{" "}
      <a href={file("parquet")} download>Parquet</a>
    </p>
  )
}
