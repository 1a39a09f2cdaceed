// A chart: uPlot in the colours of the style sheet. What is drawn is scaled to floats; what the legend says of the point
// below the pointer is the exact text.
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"

export interface Line {
  label: string
  /** Heights; null where there is none. */
  values: (number | null)[]
  /** The exact text of each. */
  texts: string[]
  /** The custom property that names its colour. */
  colour: string
  kind: "line" | "steps" | "bars"
}

/** What is drawn: a height for each time. */
interface Drawn {
  /** Unix seconds. */
  times: number[]
  lines: Line[]
}

interface Props extends Drawn {
  title: string
  /** Seconds that a point stands for; 0 where it is a moment. */
  step?: number
}

const HEIGHT = 200

export function Chart({ title, times, lines, step = 0 }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const shown = useRef<Drawn>({ times, lines })
  shown.current = { times, lines }
  const shape = lines.map((line) => `${line.label} ${line.colour} ${line.kind}`).join()
  useEffect(() => {
    const at = host.current
    if (at === null) return
    const draw = () => {
      plot.current?.destroy()
      plot.current = new uPlot(options(at, shown), data(shown.current), at)
      fill(plot.current, shown.current, step)
    }
    draw()
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: at.clientWidth, height: HEIGHT }))
    resized.observe(at)
    const dark = matchMedia("(prefers-color-scheme: dark)")
    dark.addEventListener("change", draw)
    addEventListener("theme", draw)
    return () => {
      resized.disconnect()
      dark.removeEventListener("change", draw)
      removeEventListener("theme", draw)
      plot.current?.destroy()
      plot.current = null
    }
  }, [shape, step])
  useEffect(() => {
    if (plot.current !== null) fill(plot.current, { times, lines }, step)
  }, [times, lines, step])
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={host} />
    </figure>
  )
}

function data({ times, lines }: Drawn): uPlot.AlignedData {
  return [times, ...lines.map((line) => line.values)]
}

function fill(plot: uPlot, drawn: Drawn, step: number) {
  const { times } = drawn
  plot.setData(data(drawn), false)
  const [min, max] = around(times[0] ?? 0, times.at(-1) ?? 0, step)
  plot.setScale("x", { min, max })
}

function options(host: HTMLElement, shown: { current: Drawn }): uPlot.Options {
  const style = getComputedStyle(host)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const font = `11px ${style.fontFamily}`
  const axis: uPlot.Axis = {
    stroke: colour("--muted"),
    font,
    space: 32,
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1, size: 4 },
  }
  const paths = uPlot.paths
  return {
    width: host.clientWidth || 320,
    height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    legend: { live: true },
    scales: {
      y: shown.current.lines.some((line) => line.kind === "bars") ? { range: (_, low, high) => [Math.min(0, low) * 1.08, Math.max(high, 1) * 1.08] } : {},
    },
    hooks: {
      // Without a pointer the legend speaks of the newest point.
      setCursor: [(plot) => plot.cursor.idx ?? sayNewest(plot)],
      ready: [sayNewest],
      setData: [sayNewest],
    },
    axes: [
      { ...axis, space: 84, values: (_, ticks) => ticks.map((tick, index) => clock(tick, ticks[index - 1], ticks)) },
      { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => compact(tick, ticks)) },
    ],
    series: [
      { label: "UTC", value: (_, at) => (at === null ? "–" : new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ")) },
      ...shown.current.lines.map((line, index): uPlot.Series => ({
        label: line.label,
        stroke: colour(line.colour),
        width: line.kind === "bars" ? 0 : 1.5,
        fill: line.kind === "bars" ? colour(line.colour) : undefined,
        paths: line.kind === "bars" ? paths.bars?.({ size: [0.7, 24] }) : line.kind === "steps" ? paths.stepped?.({ align: 1 }) : undefined,
        points: { show: line.kind !== "bars" && shown.current.lines[index]!.values.length < 60, size: 4 },
        value: (_, raw, __, at) => (raw === null || at === null ? "–" : (shown.current.lines[index]?.texts[at] ?? "–")),
      })),
    ],
  }
}

function sayNewest(plot: uPlot) {
  if (plot.data[0].length > 0) plot.setLegend({ idx: plot.data[0].length - 1 }, false)
}

/** The times that are shown, so that bars are whole, and one point alone stands in the middle of something. */
function around(first: number, last: number, step: number): [number, number] {
  const least = step === 0 ? 60 : step * 6
  const beside = Math.max(step / 2, (least - (last - first)) / 2)
  return [first - beside, last + beside]
}

/** A tick of the time axis: the hour, and the day where it is another one or nothing but days is shown. */
function clock(tick: number, before: number | undefined, ticks: number[]): string {
  const iso = new Date(tick * 1000).toISOString()
  const step = ticks.length > 1 ? ticks[1]! - ticks[0]! : 86400
  if (step >= 86400) return iso.slice(0, 10)
  const time = step >= 60 ? iso.slice(11, 16) : iso.slice(11, 19)
  return before === undefined || new Date(before * 1000).getUTCDate() !== new Date(tick * 1000).getUTCDate() ? `${time}\n${iso.slice(0, 10)}` : time
}

/** A tick of an axis, with as many digits as tell it from its neighbour. */
function compact(tick: number, ticks: number[]): string {
  const step = ticks.length > 1 ? Math.abs(ticks[1]! - ticks[0]!) : 1
  if (Math.abs(tick) >= 1000) return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 }).format(tick)
  return tick.toFixed(Math.max(0, Math.min(8, Math.ceil(-Math.log10(step)))))
}
