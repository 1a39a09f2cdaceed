// The numbers at the top of a page.
import type { ComponentChildren } from "preact"

export function Figures({ children }: { children: ComponentChildren }) {
  return <dl class="figures">{children}</dl>
}

/** wide: for an amount with its symbol, or a longer text. */
export function Figure({ title, wide = false, children }: { title: string; wide?: boolean; children: ComponentChildren }) {
  return (
    <div class={wide ? "wide" : undefined}>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  )
}
