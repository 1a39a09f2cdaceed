// The frame of every page, and which page a path shows. A new page is a line in routes here, and one of Paths in web.go
// and of pages in router.ts.
import { type ComponentType, render } from "preact"
import { useEffect, useState } from "preact/hooks"
import { useExact, watchStatus } from "./answers"
import { ChainStrip } from "./components/chain"
import { Proof } from "./components/proof"
import { ComparePage } from "./pages/compare"
import { EventsPage } from "./pages/events"
import { PartnerPage } from "./pages/partner"
import { StatusPage } from "./pages/status"
import { UserPage } from "./pages/user"
import { UsersPage } from "./pages/users"
import { VaultPage } from "./pages/vault"
import { VaultsPage } from "./pages/vaults"
import { start, there, usePlace } from "./router"
import type { Vault } from "./types"

interface Route {
  pattern: RegExp
  title: string
  page: ComponentType<{ address: string }>
}

const routes: Route[] = [
  { pattern: /^\/$/, title: "Vaults", page: VaultsPage },
  { pattern: /^\/vault\/([^/]+)$/, title: "Vault", page: VaultPage },
  { pattern: /^\/users$/, title: "Users", page: UsersPage },
  { pattern: /^\/user\/([^/]+)$/, title: "User", page: UserPage },
  { pattern: /^\/events$/, title: "Events", page: EventsPage },
  { pattern: /^\/compare$/, title: "Compare two blocks", page: ComparePage },
  { pattern: /^\/partner$/, title: "Partner", page: PartnerPage },
  { pattern: /^\/status$/, title: "Status", page: StatusPage },
]

/** Links of the navigation; those of other documents are loaded anew. */
const links: [path: string, text: string][] = [
  ["/", "Vaults"],
  ["/users", "Users"],
  ["/events", "Events"],
  ["/compare", "Compare"],
  ["/partner", "Partner"],
  ["/status", "Status"],
  ["/docs", "API"],
]

function App() {
  const place = usePlace()
  const route = routes.find(({ pattern }) => pattern.test(place.path))
  const address = route?.pattern.exec(place.path)?.[1] ?? ""
  const vaults = useExact("/api/v1/vaults", {})
  useEffect(() => {
    const block = place.query.get("asOfBlock")
    document.title = [route?.title ?? "Nothing here", address, block === null ? "" : `as of block ${block}`, "navlog"].filter(Boolean).join(" · ")
  }, [route, address, place])
  const Page = route?.page
  return (
    <>
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
        <Theme />
      </header>
      <ChainStrip first={firstBlock(vaults.answer?.data ?? [])} />
      <main id="main" tabIndex={-1}>
        {Page === undefined ? (
          <>
            <h1>Nothing here</h1>
            <p class="note">
              There is nothing at this address. Begin with the <a href="/">vaults</a>.
            </p>
          </>
        ) : (
          <Page key={place.path} address={address} />
        )}
      </main>
      <Proof vaults={vaults.answer?.data ?? []} />
    </>
  )
}

/** The block that the time machine begins with: that of the oldest vault. */
function firstBlock(vaults: Vault[]): string | null {
  return vaults.reduce<string | null>((first, vault) => (first === null || BigInt(vault.startBlock) < BigInt(first) ? vault.startBlock : first), null)
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
      // The browser keeps nothing: the choice holds until the page is left.
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
