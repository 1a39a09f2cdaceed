// Values that live outside of the components, such as the address bar and the newest status.
import { useEffect, useState } from "preact/hooks"

/** What has to be called when a value changes. */
export type Watchers = Set<() => void>

/** The newest value that read returns; the component is drawn again when its watcher is called and the value is another one. */
export function useWatched<T>(watchers: Watchers, read: () => T): T {
  const [value, set] = useState(read)
  useEffect(() => {
    const watcher = () => set(read)
    watchers.add(watcher)
    watcher()
    return () => void watchers.delete(watcher)
  }, [])
  return value
}
