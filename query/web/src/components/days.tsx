// A bar for each day, small enough for 90 of them on a phone. The same information is available as text for screen
// readers.
export interface DayBar {
  date: string
  /** The height, 0 to 1; null: there is no value for the day. */
  share: number | null
  how: "good" | "warn" | "bad"
  title: string
}

const WIDTH = 4
const HEIGHT = 24
/** The height of a day without a value, and the minimum height of a bar, so that it is visible. */
const LEAST = 2

export function DayBars({ days, text }: { days: DayBar[]; text: string }) {
  return (
    <svg class="days" viewBox={`0 0 ${days.length * WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={text}>
      {days.map(({ date, share, how, title }, i) => {
        const height = share === null ? LEAST : Math.max(LEAST, share * HEIGHT)
        return (
          <rect key={date} class={share === null ? "none" : how} x={i * WIDTH} y={HEIGHT - height} width={WIDTH - 1} height={height}>
            <title>{title}</title>
          </rect>
        )
      })}
    </svg>
  )
}
