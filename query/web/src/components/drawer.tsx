// A drawer beside the page, with a title.
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"

interface Props {
  /** The id of the title. */
  id: string
  title: ComponentChildren
  close: () => void
  children: ComponentChildren
}

export function Drawer({ id, title, close, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const opener = useRef(document.activeElement)
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal()
    return () => (opener.current as HTMLElement | null)?.focus?.()
  }, [])
  return (
    <dialog
      ref={dialog}
      class="drawer"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        close()
      }}
      onClick={(event) => event.target === event.currentTarget && close()}
    >
      <div class="inside">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" class="button" onClick={close}>
            Close
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}
