// The title of a page, which names its subject.
import { useEffect } from "preact/hooks"
import { group } from "../format"
import { asOf, usePlace } from "../router"

/** Sets the window's title; null while the name is unknown. */
export function useTitle(name: string | null) {
  const block = asOf(usePlace())
  useEffect(() => {
    document.title = [name, block === null ? null : `block ${group(block)}`, "navlog"].filter((part) => part !== null).join(" · ")
  }, [name, block])
}
