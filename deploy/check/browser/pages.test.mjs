// Tests the pages in a browser, on a live system whose chain is reorganised meanwhile.
import assert from "node:assert/strict"
import { test } from "node:test"
import { api, axe, finalBlock, native, open, phone, ready, reorganise, rpc, settled, takeBackAnEvent, until } from "./live.mjs"

async function pages() {
  const vault = (await api("/api/v1/vaults")).data[0].address
  // The oldest user: the newest may disappear in a reorganisation while the pages are tested.
  const user = (await api("/api/v1/users?sortBy=firstSeen&sortOrder=asc")).data[0].address
  const tx = (await api("/api/v1/events?pageSize=100")).data.at(-1).txHash // an old one, for the same reason
  return { vaults: "/", vault: `/vault/${vault}`, "vault-users": `/vault/${vault}?view=users`, users: "/users", user: `/user/${user}`, events: "/events", compare: "/compare", status: "/status", partner: "/partner", queue: `/vault/${vault}?view=queue`, "vault-events": `/vault/${vault}?view=events`, yield: `/vault/${vault}?yield=first&of=${vault}`, search: "/search?q=1", transaction: `/tx/${tx}`, docs: "/docs", "docs-architecture": "/docs/architecture", "docs-webhooks": "/docs/webhooks" }
}

/** A user who has deposited, the vault of the first holding, and its amount. */
async function depositor(block) {
  const [{ address }] = (await api(`/api/v1/users?sortBy=totalDeposited&asOfBlock=${block}`)).data
  const [{ vaultAddress, _sum }] = (await api(`/api/v1/users/${address}?asOfBlock=${block}`)).data.holdings.deposits
  return { user: { address, deposited: _sum.assetAmount }, vault: vaultAddress }
}

/** The pages that show something only with a partner's key. */
async function partnerPages() {
  const [delivery] = (await api("/api/v1/partner/webhooks/deliveries", { "x-api-key": ready.partners[0].apiKey })).data
  return { webhooks: "/partner?view=webhooks", "first-webhook": "/partner?view=first", statement: "/partner?view=statement", verify: "/partner?view=verify", delivery: `/partner/delivery/${delivery.eventId}` }
}

async function signIn(page) {
  await page.locator("input[type=password]").first().fill(ready.partners[0].apiKey)
  await page.getByRole("button", { name: "Use the key" }).click()
  await page.getByText("Signed in").waitFor()
  await settled(page)
}

const looks = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  "phone-light": { viewport: phone, colorScheme: "light" },
  "phone-dark": { viewport: phone, colorScheme: "dark" },
}
for (const look of (process.env.LOOKS ?? Object.keys(looks).join(" ")).split(" ")) {
  const options = looks[look]
  assert.ok(options, `LOOKS has ${look}, which is none of ${Object.keys(looks).join(", ")}`)
  const looksRight = async (name, path, signedIn) => {
    const { page, wrong, close } = await open(path, options)
    if (signedIn) await signIn(page)
    await page.screenshot({ path: `${process.env.SHOTS}/${name}-${look}.png`, fullPage: true })
    await page.evaluate(axe) // through the debugger, which the page's content security policy does not restrict
    const found = await page.evaluate(() => window.axe.run(document))
    const grave = found.violations.filter((violation) => ["serious", "critical"].includes(violation.impact))
    assert.deepEqual(grave.map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.html).join(" ")}`), [], `${path}, axe`)
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.ok(over <= 0, `${path} is ${over} px wider than the screen`)
    assert.deepEqual(wrong, [], path)
    await close()
  }
  test(`every page, ${look}: no errors, no serious findings of axe, nothing wider than the screen`, async () => {
    await reorganise(2)
    for (const [name, path] of Object.entries(await pages())) await looksRight(name, path, false)
    for (const [name, path] of Object.entries(await partnerPages())) await looksRight(name, path, true)
  })
}

test("the vaults are those of the API as of the block in the address bar, despite reorganisations above it", async () => {
  const block = await finalBlock()
  const want = (await api(`/api/v1/vaults?asOfBlock=${block}`)).data
  const { page, wrong, close } = await open(`/?asOfBlock=${block}`)
  await reorganise(2)
  const rows = page.locator("table").first().locator("tbody tr")
  assert.equal(await rows.count(), want.length)
  for (const [i, vault] of want.entries()) {
    const row = rows.nth(i)
    assert.match(await row.innerText(), new RegExp(vault.name))
    const titles = await row.locator("a.number:not(.yield)").evaluateAll((links) => links.map((link) => link.title))
    // A vault without a NAV yet has dashes, which explain nothing.
    assert.deepEqual(titles.map(native), [vault.navPerShare, vault.totalAssets, vault.totalSupply].filter((number) => number !== null), vault.name)
  }
  assert.deepEqual(wrong, [])
  await close()
})

test("users of a vault are sorted and paged as in the API, and the back button works", async () => {
  const block = await finalBlock()
  const vault = (await api("/api/v1/vaults")).data[0].address
  const { page, wrong, close } = await open(`/users?vault=${vault}&asOfBlock=${block}`)
  const shown = async () => (await page.locator("tbody tr a[href*='/user/']").evaluateAll((links) => links.map((link) => link.pathname.split("/").pop())))
  const wanted = async (query) => (await api(`/api/v1/vaults/${vault}/users?pageSize=50&asOfBlock=${block}&${query}`)).data.map((user) => user.address)
  assert.deepEqual(await shown(), await wanted("sortBy=firstSeen&sortOrder=desc"))
  await page.getByRole("columnheader", { name: /Total deposited/ }).getByRole("link").click()
  await page.waitForURL(/sortBy=totalDeposited/)
  await until("order by deposits", async () => (await shown()).join() === (await wanted(`sortBy=totalDeposited&sortOrder=${new URL(page.url()).searchParams.get("sortOrder") ?? "desc"}`)).join())
  await page.goBack()
  await until("first order again", async () => (await shown()).join() === (await wanted("sortBy=firstSeen&sortOrder=desc")).join())
  assert.deepEqual(wrong, [])
  await close()
})

test("the users of a vault are those of the API, and the numbers of each open their proofs", async () => {
  const block = await finalBlock()
  const vault = (await api("/api/v1/vaults")).data[0].address
  const want = (await api(`/api/v1/vaults/${vault}/users?sortBy=totalDeposited&pageSize=50&asOfBlock=${block}`)).data
  assert.ok(want.length > 0)
  const { page, wrong, close } = await open(`/vault/${vault}?view=users&sortBy=totalDeposited&asOfBlock=${block}`)
  const rows = page.getByRole("region", { name: "Users" }).locator("tbody tr")
  await until("users of the vault", async () => (await rows.count()) === want.length)
  assert.deepEqual(await rows.locator("a[href*='/user/']").evaluateAll((links) => links.map((link) => link.pathname.split("/").pop())), want.map((user) => user.address))
  assert.deepEqual((await rows.first().locator("a.number").evaluateAll((links) => links.map((link) => link.title))).map(native), [want[0].totalDeposited, want[0].totalWithdrawn])
  await rows.first().locator("a.number").first().click()
  const drawer = page.getByRole("dialog")
  await drawer.getByText(/last sum is the number/).waitFor()
  assert.equal(native(await drawer.locator(".value [title]").first().getAttribute("title")), want[0].totalDeposited)
  await page.screenshot({ path: `${process.env.SHOTS}/vault-users-proof.png` })
  assert.deepEqual(wrong, [])
  await close()
})

test("a number opens its proof, which adds up to the API's number, and a link reopens it", async () => {
  const block = await finalBlock()
  const { user, vault: of } = await depositor(block)
  const { page, wrong, close } = await open(`/user/${user.address}?asOfBlock=${block}`)
  await page.locator(`a.number[href*='${of}%2F_sum%2FassetAmount']`).first().click()
  const drawer = page.getByRole("dialog")
  await drawer.waitFor()
  await drawer.locator("tbody tr").first().waitFor()
  const explained = await api(`/api/v1/explain?of=/api/v1/users/${user.address}&field=/holdings/deposits/${of}/_sum/assetAmount&asOfBlock=${block}&pageSize=50`)
  assert.equal(explained.data.value, user.deposited)
  assert.equal(native(await drawer.locator(".value [title]").first().getAttribute("title")), user.deposited)
  assert.equal(await drawer.locator("tbody tr").count(), explained.data.events.length)
  await drawer.locator(".note.proven", { hasText: `The last sum is the number. ${explained.data.events.length} event${explained.data.events.length === 1 ? "" : "s"}, added up again by your browser.` }).waitFor()
  assert.equal(explained.data.events.reduce((sum, event) => sum + BigInt(event.change), 0n).toString(), user.deposited)
  await page.screenshot({ path: `${process.env.SHOTS}/proof.png` })
  const again = await open(new URL(page.url()).pathname + new URL(page.url()).search)
  await again.page.getByRole("dialog").locator("tbody tr").first().waitFor()
  await page.keyboard.press("Escape")
  await drawer.waitFor({ state: "detached" })
  assert.deepEqual([...wrong, ...again.wrong], [])
  await again.close()
  await close()
})

test("the events of a number are verified in the browser, and a false response is detected", async () => {
  const block = await finalBlock()
  const { user, vault: of } = await depositor(block)
  const { page, wrong, close } = await open(`/user/${user.address}?asOfBlock=${block}`)
  await page.locator(`a.number[href*='${of}%2F_sum%2FassetAmount']`).first().click()
  const drawer = page.getByRole("dialog")
  await drawer.getByRole("link", { name: "Verify" }).click()
  await drawer.getByText("Every event of this page is verified.").waitFor()
  const explained = await api(`/api/v1/explain?of=/api/v1/users/${user.address}&field=/holdings/deposits/${of}/_sum/assetAmount&asOfBlock=${block}&pageSize=20&proof=true`)
  const rows = drawer.locator("tbody tr")
  assert.equal(await rows.count(), explained.data.events.length)
  assert.equal(await drawer.locator(".badge.good", { hasText: "verified" }).count(), explained.data.events.length)
  for (const [i, event] of explained.data.events.entries()) {
    // Request the block with that hash from the node, as an explorer would.
    const hash = await rows.nth(i).locator("[title^='0x']").first().getAttribute("title")
    assert.equal(hash, event.proof.blockHash)
    assert.equal(Number((await rpc("eth_getBlockByHash", hash, false)).number), Number(event.blockNumber))
  }
  await drawer.getByText("compare it with a block explorer that you trust").waitFor()
  await drawer.getByRole("button", { name: /Copy block hash 0x/ }).first().waitFor()
  await page.screenshot({ path: `${process.env.SHOTS}/proof-verified.png` })
  await drawer.getByRole("link", { name: "Leave the proofs out" }).click()
  await drawer.locator(".badge.good").first().waitFor({ state: "detached" })
  // A number made of several events is verified page by page, with the page size of the address bar.
  const vault = (await api(`/api/v1/users/${user.address}?asOfBlock=${block}`)).data.holdings.deposits[0].vaultAddress
  const paged = await open(`/vault/${vault}?asOfBlock=${block}&explain=/api/v1/vaults/${vault}&field=/stats/userCount&verify=1&explainPage=1`)
  const users = (await api(`/api/v1/vaults/${vault}?asOfBlock=${block}`)).data.stats.userCount
  for (let at = 1; at <= Math.min(users, 3); at++) {
    if (at > 1) await paged.page.getByRole("dialog").getByRole("link", { name: "Next page" }).click()
    if (users > 1) await paged.page.getByRole("dialog").getByText(`Page ${at} of ${users}`).waitFor()
    await paged.page.getByRole("dialog").getByText("Every event of this page is verified.").waitFor()
  }
  wrong.push(...paged.wrong)
  await paged.close()
  // The same page of a server that changed an amount in its response.
  await page.route(/explain\?.*proof=true/, async (route) => {
    const answer = await route.fetch()
    const body = await answer.json()
    body.data.events[0].change = String(BigInt(body.data.events[0].change) + 1n)
    await route.fulfill({ response: answer, json: body })
  })
  await page.goto(page.url() + "&verify=20")
  await drawer.getByText(/Of 1 event of this page the proof does not hold/).waitFor()
  await drawer.getByText(/The change by the log is \d+, and \d+ is shown\./).waitFor()
  await page.screenshot({ path: `${process.env.SHOTS}/proof-refuted.png` })
  assert.deepEqual(wrong, [])
  await close()
})

test("the explorer lists the log as the API does, and marks retracted events", async () => {
  await takeBackAnEvent()
  const { page, wrong, close } = await open("/events?retracted=true&kind=DepositAccepted")
  await page.locator("tbody tr").first().waitFor()
  const listed = () => page.locator("tbody tr").evaluateAll((all) => all.map((row) => [row.lastElementChild.textContent.replaceAll(",", ""), row.firstElementChild.textContent.replaceAll(",", ""), row.querySelector("a[href*='/tx/']").title, row.classList.contains("retracted")]))
  // The page follows the log and grows with it: its newest rows are the API's first page.
  await until("list of the API on the page", async () => {
    const want = (await api("/api/v1/events?retracted=true&kind=DepositAccepted&pageSize=50")).data.map((event) => [event.seq, event.blockNumber, event.txHash, event.state === "retracted"])
    return want.length > 0 && JSON.stringify((await listed()).slice(0, want.length)) === JSON.stringify(want)
  })
  const { page: marked, close: closeMarked, wrong: wrongMarked } = await open("/events?retracted=true")
  await until("mark of a log that was taken back", async () => (await marked.getByText(/reorganised away/).count()) > 0)
  await marked.screenshot({ path: `${process.env.SHOTS}/reorganised.png` })
  assert.deepEqual([...wrong, ...wrongMarked], [])
  await closeMarked()
  await close()
})

test("a changed filter keeps the focus, a time stays as entered, and the fields follow the address bar", async () => {
  const from = "2020-01-01T00:00:00Z"
  const { page, wrong, close } = await open(`/events?from=${from}`)
  const kind = page.locator("select[name=kind]")
  await kind.focus()
  await kind.selectOption("DepositAccepted")
  await page.waitForURL(/kind=DepositAccepted/)
  await settled(page)
  assert.equal(await page.evaluate(() => document.activeElement.name), "kind")
  assert.equal(new URL(page.url()).searchParams.get("from"), from)
  assert.equal(await page.locator("input[name=from]").inputValue(), from)
  await page.goBack()
  await until("all kinds again", async () => (await kind.inputValue()) === "")
  assert.equal(await page.locator("input[name=from]").inputValue(), from)
  await page.getByRole("link", { name: "Clear" }).click()
  await until("empty field for a day", async () => (await page.locator("input[name=from][type=date]").inputValue()) === "")
  assert.deepEqual(wrong, [])
  await close()
})

test("the newest events follow the log: mined events appear, and retracted ones are marked", async () => {
  const { page, wrong, close } = await open("/events")
  await page.getByText("Live: new events appear").waitFor()
  await page.evaluate(() => (window.sameDocument = true))
  const rows = () => page.locator("tbody tr").evaluateAll((all) => all.map((row) => [row.lastElementChild.textContent.replaceAll(",", ""), row.classList.contains("retracted")]))
  const first = (await rows()).map(([seq]) => Number(seq))
  await until("new event at the top", async () => Number((await rows())[0][0]) > Math.max(...first))
  assert.ok((await rows()).length > first.length, "the older ones are still there")
  await takeBackAnEvent()
  await until("mark of what is reorganised away", async () => (await rows()).some(([, gone]) => gone))
  await page.screenshot({ path: `${process.env.SHOTS}/events-follow.png` })
  // Whatever was added and retracted meanwhile: each row matches the current log at its seq.
  await until("same as in the log", async () => {
    const log = new Map((await api("/api/v1/events?retracted=true&pageSize=100")).data.map((event) => [event.seq, event.state === "retracted"]))
    const now = await rows()
    return now.some(([, gone]) => gone) && now.filter(([seq]) => log.has(seq)).length > 0 && now.every(([seq, gone]) => !log.has(seq) || log.get(seq) === gone)
  })
  assert.equal(await page.evaluate(() => window.sameDocument), true, "the page was loaded again")
  // A past state does not change.
  const past = await open(`/events?asOfBlock=${await finalBlock()}`)
  assert.equal(await past.page.getByText("Live: new events appear").count(), 0)
  assert.deepEqual([...wrong, ...past.wrong], [])
  await past.close()
  await close()
})

test("the time machine has a mark for each reorganisation of the chain", async () => {
  await takeBackAnEvent()
  const { page, wrong, close } = await open("/")
  const requested = () => page.evaluate(() => performance.getEntriesByType("resource").map((entry) => entry.name).filter((name) => name.includes("/reorganisations")).at(-1))
  await until("the marks of the API's reorganisations", async () => {
    const { data } = await api((await requested()).slice(ready.api.length))
    const titles = await page.locator("#machine ~ svg.marks line title").evaluateAll((all) => all.map((title) => title.textContent))
    return data.length > 0 && titles.length === data.length && data.every(({ fromBlock, count }, i) => titles[i].startsWith(`${count} reorganisation`) && titles[i].replaceAll(",", "").includes(`block`) && titles[i].replaceAll(",", "").includes(` ${fromBlock}`))
  })
  await page.screenshot({ path: `${process.env.SHOTS}/marks.png` })
  assert.deepEqual(wrong, [])
  await close()
})

test("the time machine moves a page to a block, and the address bar keeps it", async () => {
  const block = await finalBlock()
  const vault = (await api("/api/v1/vaults")).data[0]
  const { page, wrong, close } = await open(`/vault/${vault.address}`)
  const past = String(Number(block) - 3)
  const field = page.locator("input[name=block]").first()
  // New blocks do not interrupt a user who is typing.
  await field.fill("1")
  const newest = async () => Number(await page.locator("#machine").getAttribute("max"))
  const seen = await newest()
  await until("newer block on the page", async () => (await newest()) > seen)
  assert.deepEqual(await page.evaluate(() => [document.activeElement.name, document.activeElement.value]), ["block", "1"])
  await field.fill(past)
  await field.press("Enter")
  await page.waitForURL(new RegExp(`asOfBlock=${past}`))
  const want = (await api(`/api/v1/vaults/${vault.address}?asOfBlock=${past}`)).data
  await until("total as of the block", async () => (await page.locator("a.number").evaluateAll((links) => links.map((link) => link.title))).map(native).includes(want.totalAssets))
  await page.reload()
  await until("same after a reload", async () => (await page.locator("a.number").evaluateAll((links) => links.map((link) => link.title))).map(native).includes(want.totalAssets))
  assert.deepEqual(wrong, [])
  await close()
})

test("typing a time does not navigate, Enter does, and leaving the page cancels it", async () => {
  let block
  await until("long enough chain", async () => Number((block = await finalBlock())) > 60)
  const { page, wrong, close } = await open(`/?asOfBlock=${block}`)
  const field = page.locator("input[name=time]")
  await until("time of the block", async () => (await field.inputValue()) !== "")
  const times = await Promise.all([20, 25].map(async (back) => (await api(`/api/v1/block?asOfBlock=${Number(block) - back}`)).data.timestamp))
  const timestamp = times.find((time) => !time.includes(":00.")) // without seconds, a minute is chosen as a whole
  const target = (await api(`/api/v1/block?time=${timestamp}`)).data.blockNumber
  const requested = []
  page.on("request", (request) => request.url().includes("/api/v1/block?time=") && requested.push(request.url()))
  await field.focus()
  await page.keyboard.press("ArrowUp")
  await field.fill(timestamp.slice(0, 19))
  assert.equal(await page.evaluate(() => document.activeElement.name), "time")
  assert.deepEqual(requested, [])
  await page.keyboard.press("Enter")
  await page.waitForURL(new RegExp(`asOfBlock=${target}$`))
  assert.equal(await page.evaluate(() => document.activeElement.name), "time")
  let answer
  await page.route(/block\?time=/, async (route) => {
    const response = await route.fetch()
    answer = () => route.fulfill({ response }).catch(() => {}) // the page no longer waits for it
  })
  await field.fill("2020-01-01T00:00:00")
  await field.fill((await api(`/api/v1/block?asOfBlock=${Number(block) - 6}`)).data.timestamp.slice(0, 19))
  // The field loses the focus when the mouse is pressed, and the page is left when it is released: after the request has
  // been sent.
  await page.getByRole("link", { name: "Status", exact: true }).hover()
  await page.mouse.down()
  await until("request for the block at that time", async () => answer !== undefined)
  const givenUp = page.waitForEvent("requestfailed", (request) => request.url().includes("/api/v1/block?time="))
  await page.mouse.up()
  await page.waitForURL(/\/status/)
  await givenUp
  await answer()
  assert.equal(new URL(page.url()).pathname, "/status")
  // The slider, too: the page is left before it has rested long enough, and its timer would end before this one.
  await page.goBack()
  await page.locator("#machine").waitFor()
  await page.evaluate(() => {
    const slider = document.querySelector("#machine")
    slider.stepDown()
    slider.dispatchEvent(new Event("input", { bubbles: true }))
    ;[...document.querySelectorAll("nav[aria-label=Pages] a")].find((link) => link.textContent === "Users").click()
    return new Promise((done) => setTimeout(done, 500))
  })
  assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, `/users?asOfBlock=${target}`)
  assert.deepEqual(wrong, [])
  await close()
})

test("a hovered point stays selected during a refresh, in the tooltip and in the legend", async () => {
  const [vault] = (await api("/api/v1/vaults")).data
  const { page, wrong, close } = await open(`/vault/${vault.address}?range=updates`, { viewport: { width: 1440, height: 900 } })
  const chart = page.locator("figure.chart", { hasText: "NAV per share" })
  const caption = () => chart.locator("figcaption").innerText()
  await until("chart of several updates", async () => Number(/(\d+) updates/.exec(await caption())?.[1]) >= 5)
  const over = chart.locator(".u-over")
  await over.scrollIntoViewIfNeeded()
  const legend = () => chart.locator(".u-legend").innerText()
  const tip = chart.locator(".tip")
  // In the middle, where the pixel belongs to another point once the span has grown; further left if the newest point is next to it.
  const shares = [0.6, 0.5, 0.4, 0.3, 0.2]
  let box
  await until("older point below the pointer", async () => {
    box = await over.boundingBox()
    await page.mouse.move(box.x + box.width * shares[0], box.y + box.height / 2)
    shares.push(shares.shift())
    const [newest] = (await api(`/api/v1/vaults/${vault.address}/nav?pageSize=1`)).data
    return (await tip.isVisible()) && !(await legend()).includes(newest.timestamp.slice(0, 19).replace("T", " "))
  })
  const before = [await caption(), await legend()]
  await until("newer update on the chart", async () => (await caption()) !== before[0])
  await settled(page)
  assert.equal(await legend(), before[1], "the legend speaks of another point")
  const hovered = await tip.innerText()
  assert.ok(before[1].includes(hovered.split("\n").at(-1).split(" ").at(-1)), `the legend shows ${before[1]}, the tooltip ${hovered}`)
  // The crosshair is shared: another chart of the page shows the same time.
  assert.equal(await page.locator("figure.chart", { hasText: "Total assets" }).locator(".tip").innerText().then((text) => text.split("\n")[0]), hovered.split("\n")[0])
  // Dragging over a span zooms into it, and the zoom stays.
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.9, box.y + box.height / 2, { steps: 4 })
  await page.mouse.up()
  await chart.getByRole("button", { name: "Reset zoom" }).click()
  await chart.getByRole("button", { name: "Reset zoom" }).waitFor({ state: "detached" })
  assert.deepEqual(wrong, [])
  await close()
})

test("the search covers pages and operations of the documentation, and a result leads to its place", async () => {
  const { page, wrong, close } = await open("/docs/architecture")
  const found = page.getByRole("list", { name: "Found" })
  await page.getByRole("searchbox").fill("touched lapses")
  await found.getByRole("link", { name: "Architecture: The read model" }).waitFor()
  await page.screenshot({ path: `${process.env.SHOTS}/docs-search.png` })
  await page.getByRole("searchbox").fill("users of a vault")
  await found.getByRole("link", { name: "GET /api/v1/vaults/{address}/users" }).click()
  await page.waitForURL(/\/docs#listVaultUsers$/)
  await page.locator("details#listVaultUsers[open]").waitFor()
  await page.getByRole("searchbox").fill("no page has this word: xyzzy")
  await page.getByText("Nothing is found.").waitFor()
  assert.deepEqual(wrong, [])
  await close()
})

test("a partner's key shows the partner's data and stays in memory, and a wrong key is reported in a sentence", async () => {
  const { page, wrong, close } = await open("/partner")
  const key = page.locator("input[type=password]").first()
  await key.fill("nk_test_wrong")
  await key.press("Enter")
  await until("sentence about the key", async () => /key/i.test(await page.locator("[role=alert], .error, .bad").first().innerText()))
  await page.waitForLoadState("networkidle") // the page sends several requests with a key
  wrong.length = 0 // the browser itself reports the 401
  const partner = ready.partners[0]
  await page.locator("input[type=password]").first().fill(partner.apiKey)
  await page.locator("input[type=password]").first().press("Enter")
  const stats = (await api("/api/v1/partner/stats", { "x-api-key": partner.apiKey })).data
  await page.getByText(stats.partnerName).first().waitFor()
  await settled(page)
  await page.screenshot({ path: `${process.env.SHOTS}/partner-open.png`, fullPage: true })
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie, history.state]))
  assert.ok(!kept.includes(partner.apiKey), `the key is stored although the user did not request it: ${kept}`)
  assert.deepEqual(wrong, [])
  await close()
})
