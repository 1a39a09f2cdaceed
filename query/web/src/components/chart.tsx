// A chart: uPlot in the colours of the style sheet. Values are drawn as floats; the tooltip and the legend show the
// exact text. The charts of a page share one crosshair.
import { useEffect, useRef, useState } from "preact/hooks"
import uPlot from "uplot"
import { barRange, numberLabels, timeLabels, TIMES } from "../axis"
import { time } from "../format"

export interface Line {
  label: string
  /** Heights; null if there is none. */
  values: (number | null)[]
  /** The exact text of each value. */
  texts: string[]
  /** The custom property with its colour. */
  colour: string
  kind: "steps" | "bars"
}

/** What is drawn: a height for each time. */
interface Drawn {
  /** Unix seconds. */
  times: number[]
  lines: Line[]
}

interface Props extends Drawn {
  title: string
  /** Seconds that a point covers; 0 if it is a moment. */
  step?: number
  /** Whether the heights are counts, between which the axis has no label. */
  whole?: boolean
}

/** The distances between labels of counts. */
const WHOLE = Array.from({ length: 12 }, (_, zeros) => [1, 2, 5].map((digit) => digit * 10 ** zeros)).flat()

/** The state of a chart between two refreshes. */
interface View {
  drawn: Drawn
  step: number
  whole: boolean
  /** The point under the pointer: its time, and how many points before it have the same time. */
  hovered: { time: number; nth: number } | null
  zoomed: boolean
  /** Whether the chart itself is moving its crosshair, to follow a point. */
  following: boolean
}

const HEIGHT = 200
/** All charts of a page share one crosshair. */
const CROSSHAIR = "navlog"

export function Chart({ title, times, lines, step = 0, whole = false }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const view = useRef<View>({ drawn: { times, lines }, step, whole, hovered: null, zoomed: false, following: false })
  const [zoomed, setZoomed] = useState(false)
  view.current.drawn = { times, lines }
  view.current.step = step
  const shape = lines.map((line) => `${line.label} ${line.colour} ${line.kind}`).join()
  useEffect(() => {
    const at = host.current
    if (at === null) return
    const draw = () => {
      plot.current?.destroy()
      view.current.zoomed = false
      setZoomed(false)
      plot.current = new uPlot(options(at, view.current, setZoomed), data(view.current.drawn), at)
      fill(plot.current, view.current)
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
    if (plot.current !== null) fill(plot.current, view.current)
  }, [times, lines, step])
  const reset = () => {
    view.current.zoomed = false
    setZoomed(false)
    if (plot.current !== null) fill(plot.current, view.current)
  }
  return (
    <figure class="chart">
      <figcaption>
        {title}
        {zoomed && (
          <button type="button" class="reset" onClick={reset}>
            Reset zoom
          </button>
        )}
      </figcaption>
      <div ref={host} class="plot" />
    </figure>
  )
}

function data({ times, lines }: Drawn): uPlot.AlignedData {
  return [times, ...lines.map((line) => line.values)]
}

/** Draws the newest data. The hovered point and the zoomed range are kept. */
function fill(plot: uPlot, view: View) {
  const { times } = view.drawn
  const at = indexOf(view)
  view.following = true
  plot.batch(() => {
    plot.setData(data(view.drawn), false)
    const [min, max] = view.zoomed ? [plot.scales.x!.min!, plot.scales.x!.max!] : around(times[0] ?? 0, times.at(-1) ?? 0, view.step)
    plot.setScale("x", { min, max })
  })
  if (at !== null) {
    plot.setCursor({ left: plot.valToPos(times[at]!, "x"), top: Math.max(0, plot.cursor.top ?? 0) }, false)
    plot.setLegend({ idx: at }, false)
    show(plot, view)
  } else {
    view.hovered = null
    showNewest(plot)
    show(plot, view)
  }
  view.following = false
}

function options(host: HTMLElement, view: View, zoomed: (on: boolean) => void): uPlot.Options {
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
  const { lines } = view.drawn
  // Two bars of a point stand side by side: both may be below zero, and one would hide the other.
  const bars = lines.filter((line) => line.kind === "bars")
  const besides = (line: Line) => (bars.length === 1 ? { size: [0.7, 24], align: 0 } : { size: [0.35, 12], align: line === bars[0] ? -1 : 1 }) as uPlot.Series.BarsPathBuilderOpts
  const paths = uPlot.paths
  return {
    width: host.clientWidth || 320,
    height: HEIGHT,
    // The label of the last tick is wider than the space to its right.
    padding: [10, 40, 0, 0],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    cursor: { drag: { x: true, y: false, dist: 8 }, points: { size: 6 }, sync: { key: CROSSHAIR, scales: ["x", null] }, bind: { dblclick: () => () => null } },
    legend: { live: true },
    scales: {
      y: lines.some((line) => line.kind === "bars") ? { range: (_, low, high) => barRange(low, high, view.whole) } : {},
    },
    hooks: {
      setCursor: [
        (plot) => {
          if (view.following) return
          const { idx } = plot.cursor
          const time = plot.data[0][idx ?? -1]
          view.hovered = time === undefined ? null : { time, nth: idx! - plot.data[0].indexOf(time) }
          if (view.hovered === null) showNewest(plot)
          show(plot, view)
        },
      ],
      setSelect: [
        (plot) => {
          if (plot.select.width === 0) return
          view.zoomed = true
          zoomed(true)
        },
      ],
      ready: [
        (plot) => {
          const tip = document.createElement("div")
          tip.className = "tip"
          tip.hidden = true
          plot.over.append(tip)
          showNewest(plot)
        },
      ],
    },
    axes: [
      { ...axis, space: (_, __, ___, ____, width) => (width < 400 ? 60 : 84), size: 44, incrs: TIMES, values: (_, ticks, __, ___, step) => timeLabels(ticks, step) },
      { ...axis, size: 64, ...(view.whole ? { incrs: WHOLE } : {}), values: (_, ticks) => numberLabels(ticks) },
    ],
    series: [
      { label: "UTC", value: (_, at) => (at === null ? "–" : moment(at)) },
      ...lines.map((line, index): uPlot.Series => ({
        label: line.label,
        stroke: colour(line.colour),
        width: line.kind === "bars" ? 0 : 1.5,
        fill: line.kind === "bars" ? colour(line.colour) : undefined,
        paths: line.kind === "bars" ? paths.bars?.(besides(line)) : paths.stepped?.({ align: 1 }),
        points: { show: line.kind !== "bars" && line.values.length < 60, size: 4 },
        value: (_, raw, __, at) => (raw === null || at === null ? "–" : (view.drawn.lines[index]?.texts[at] ?? "–")),
      })),
    ],
  }
}

const moment = (at: number) => time(new Date(at * 1000).toISOString())

/** Without a pointer the legend shows the newest point. */
function showNewest(plot: uPlot) {
  if (plot.data[0].length > 0) plot.setLegend({ idx: plot.data[0].length - 1 }, false)
}

/** The index of the hovered point in the drawn data; null if it is not there, or no longer. */
function indexOf({ hovered, drawn: { times } }: View): number | null {
  if (hovered === null) return null
  const at = times.indexOf(hovered.time) + hovered.nth
  return times[at] === hovered.time ? at : null
}

/** Puts the tooltip next to the hovered point, on the side with more space. */
function show(plot: uPlot, view: View) {
  const tip = plot.over.querySelector<HTMLElement>(".tip")
  if (tip === null) return
  const { times, lines } = view.drawn
  const at = indexOf(view)
  tip.hidden = at === null
  if (at === null) return
  tip.replaceChildren(row("UTC", moment(times[at]!)), ...lines.map((line) => row(line.label, line.texts[at] ?? "–")))
  const x = plot.valToPos(times[at]!, "x")
  const left = x > plot.over.clientWidth / 2
  tip.style.left = left ? "auto" : `${x + 10}px`
  tip.style.right = left ? `${plot.over.clientWidth - x + 10}px` : "auto"
}

function row(label: string, text: string): HTMLElement {
  const line = document.createElement("div")
  const name = document.createElement("span")
  name.textContent = label
  line.append(name, ` ${text}`)
  return line
}

/** The visible range of times, extended so that bars are complete, and a single point is in the middle of a range. */
function around(first: number, last: number, step: number): [number, number] {
  const least = step === 0 ? 60 : step * 6
  const beside = Math.max(step / 2, (least - (last - first)) / 2)
  return [first - beside, last + beside]
}
