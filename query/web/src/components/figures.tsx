// The numbers at the head of a page.
import type { ComponentChildren } from "preact"

export function Figures({ children }: { children: ComponentChildren }) {
  return <dl class="figures">{children}</dl>
}

export function Figure({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  )
}
