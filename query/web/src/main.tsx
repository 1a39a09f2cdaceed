// The frame of every page, and the choice of the page for a path. A new page needs a line in routes here, in Paths in
// web.go and in pages in router.ts.
import { type ComponentType, render } from "preact"
import { useState } from "preact/hooks"
import { useExact, watchStatus } from "./answers"
import { Chip, Notices, TimeMachine, firstBlock } from "./components/chain"
import { BlockTime } from "./components/names"
import { Proof } from "./components/proof"
import { Search } from "./components/search"
import { useTitle } from "./components/title"
import { YieldProof } from "./components/yields"
import { ComparePage } from "./pages/compare"
import { DeliveryPage } from "./pages/delivery"
import { EventsPage } from "./pages/events"
import { PartnerPage } from "./pages/partner"
import { SearchPage } from "./pages/search"
import { StatusPage } from "./pages/status"
import { TransactionPage } from "./pages/tx"
import { UserPage } from "./pages/user"
import { UsersPage } from "./pages/users"
import { VaultPage } from "./pages/vault"
import { VaultsPage } from "./pages/vaults"
import { AS_OF, asOf, start, there, usePlace } from "./router"

interface Route {
  pattern: RegExp
  page: ComponentType<{ address: string }>
  /** Whether the page can show a past block. */
  past?: true
}

const routes: Route[] = [
  { pattern: /^\/$/, page: VaultsPage, past: true },
  { pattern: /^\/vault\/([^/]+)$/, page: VaultPage, past: true },
  { pattern: /^\/users$/, page: UsersPage, past: true },
  { pattern: /^\/user\/([^/]+)$/, page: UserPage, past: true },
  { pattern: /^\/events$/, page: EventsPage, past: true },
  { pattern: /^\/tx\/([^/]+)$/, page: TransactionPage },
  { pattern: /^\/search$/, page: SearchPage },
  { pattern: /^\/compare$/, page: ComparePage },
  { pattern: /^\/partner$/, page: PartnerPage, past: true },
  { pattern: /^\/partner\/delivery\/([^/]+)$/, page: DeliveryPage },
  { pattern: /^\/status$/, page: StatusPage },
]

/** Links of the navigation; those to other documents load a new page. */
const links: [path: string, text: string][] = [
  ["/", "Vaults"],
  ["/users", "Users"],
  ["/events", "Events"],
  ["/compare", "Compare"],
  ["/partner", "Partner"],
  ["/status", "Status"],
  ["/docs", "Docs"],
]

function App() {
  const place = usePlace()
  const route = routes.find(({ pattern }) => pattern.test(place.path))
  const address = route?.pattern.exec(place.path)?.[1] ?? ""
  const vaults = useExact("/api/v1/vaults", {})
  const block = asOf(place)
  const dated = useExact(block === null ? null : "/api/v1/block", { query: { [AS_OF]: block } })
  const blockTime = block === null ? null : dated.answer?.data.timestamp
  const known = vaults.answer?.data ?? []
  const Page = route?.page ?? NothingHere
  return (
    <BlockTime.Provider value={blockTime}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={there(place, "/")}>
          navlog
        </a>
        <nav aria-label="Pages">
          {links.map(([path, text]) => (
            <a key={path} href={path === "/docs" ? path : there(place, path)} aria-current={place.path === path ? "page" : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <Search vaults={known} />
        <Chip />
        <Theme />
      </header>
      {route?.past && <TimeMachine first={firstBlock(known)} blockTime={blockTime} />}
      <main id="main" tabIndex={-1}>
        <Notices />
        <Page key={place.path} address={address} />
      </main>
      <Proof vaults={known} />
      <YieldProof vaults={known} />
    </BlockTime.Provider>
  )
}

function NothingHere() {
  useTitle("Page not found")
  return (
    <>
      <h1>Page not found</h1>
      <p class="note">
        There is no page at this address. Search for an address, a transaction or a block above, or begin with the <a href="/">vaults</a> or the{" "}
        <a href="/docs">documentation</a>.
      </p>
    </>
  )
}

const themes = ["system", "light", "dark"] as const

function Theme() {
  const [theme, set] = useState<string>(document.documentElement.dataset.theme ?? "system")
  const choose = (next: string) => {
    set(next)
    if (next === "system") delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = next
    try {
      if (next === "system") localStorage.removeItem("theme")
      else localStorage.setItem("theme", next)
    } catch {
      // The browser stores nothing, so the choice lasts until the page is left.
    }
    dispatchEvent(new Event("theme"))
  }
  return (
    <label class="theme">
      <span class="unseen">Theme</span>
      <select value={theme} onChange={(event) => choose(event.currentTarget.value)}>
        {themes.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  )
}

start()
void watchStatus()
const app = document.getElementById("app")
if (app !== null) {
  app.replaceChildren()
  render(<App />, app)
}
