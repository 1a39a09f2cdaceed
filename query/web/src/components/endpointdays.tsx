// The state of the partner's endpoint on each of the last 30 days.
import { attempts, dayText, daysText, howWell, ms, succeeded, sumOf } from "../endpointdays"
import { group } from "../format"
import { usePartner } from "../partner"
import type { EndpointDay } from "../types"
import { DayBars } from "./days"
import { Figure, Figures } from "./figures"
import { Empty, Shown } from "./state"
import { Table } from "./table"

/** Polling interval, ms; the data is per day. */
const EVERY = 300_000

const msOrNone = (value: number | null) => (value === null ? <span class="faint">&ndash;</span> : ms(value))

export function EndpointDays({ again }: { again: number }) {
  const health = usePartner("/api/v1/partner/webhooks/health", {}, again, () => EVERY)
  return <Shown asked={health}>{({ days }) => <Days days={days} />}</Shown>
}

function Days({ days }: { days: EndpointDay[] }) {
  const all = sumOf(days)
  if (all.attempts === 0) return <Empty>No attempt of the last {days.length} days is kept.</Empty>
  const slowest = all.slowest?.medianMs ?? 0
  const busy = days.filter((day) => day.attempts > 0).reverse()
  return (
    <>
      <Figures>
        <Figure title={`Attempts, ${days.length} days`}>{attempts(all)}</Figure>
        <Figure title="Failed">{group(String(all.failed))}</Figure>
        <Figure title="Succeeded">{succeeded(all)}</Figure>
        <Figure title="Median response time, newest day">{msOrNone(busy.find(({ medianMs }) => medianMs !== null)?.medianMs ?? null)}</Figure>
      </Figures>
      <div class="pair">
        <figure>
          <figcaption>Successful attempts by day</figcaption>
          <DayBars days={days.map((day) => ({ date: day.day, share: day.attempts === 0 ? null : (day.attempts - day.failed) / day.attempts, how: howWell(day), title: dayText(day) }))} text={`Successful attempts, ${daysText(days)}`} />
        </figure>
        <figure>
          <figcaption>Median response time by day</figcaption>
          <DayBars
            days={days.map((day) => ({ date: day.day, share: day.medianMs === null ? null : slowest === 0 ? 1 : day.medianMs / slowest, how: "good", title: dayText(day) }))}
            text={all.slowest === null ? "Median response time: no attempt succeeded." : `Median response time: the slowest day is ${all.slowest.day} with ${ms(slowest)}.`}
          />
        </figure>
      </div>
      <details class="numbers">
        <summary>Numbers by day</summary>
        <Table
          caption="Attempts by day"
          rows={busy}
          id={({ day }) => day}
          columns={[
            { title: "Day, UTC", cell: ({ day }) => day },
            { title: "Attempts", number: true, cell: attempts },
            { title: "Failed", number: true, cell: ({ failed }) => group(String(failed)) },
            { title: "Succeeded", number: true, cell: succeeded },
            { title: "Median response time", number: true, cell: ({ medianMs }) => msOrNone(medianMs) },
          ]}
        />
      </details>
    </>
  )
}
