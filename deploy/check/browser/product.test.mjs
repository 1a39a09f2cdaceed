// Tasks that users do with the pages, and faults that must not occur meanwhile.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { before, test } from "node:test"
import { api, axe, finalBlock, native, open, phone, ready, rpc, settled, until, wide } from "./live.mjs"

const desktop = { width: 1440, height: 900 }
const handset = { width: 390, height: 844 }
const DAYS = 31

// The chain's clock is advanced by a month, so that there are yields over 30 days.
before(async () => {
  await until("NAV of every vault", async () => (await api("/api/v1/vaults")).data.every(({ navPerShare }) => navPerShare !== null))
  await rpc("evm_increaseTime", DAYS * 86_400)
  const { data: vaults } = await api("/api/v1/vaults")
  await until("yield over 30 days of every vault", async () => (await Promise.all(vaults.map(({ address }) => api(`/api/v1/vaults/${address}/series?interval=week`)))).every(({ data }) => data.yields.some(({ days }) => days === 30)))
})

const vaultNames = async () => (await api("/api/v1/vaults")).data

/** The exact amounts in a part of a page, in native units. */
const amounts = (locator) => locator.locator("[title*='native units']").evaluateAll((all) => all.map((one) => one.title)).then((titles) => titles.map(native))

/** Records each text that is drawn on a canvas, with its position. */
const recordLabels = () => {
  window.drawn = []
  const { fillText } = CanvasRenderingContext2D.prototype
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const width = this.measureText(text).width
    const left = { right: x - width, center: x - width / 2 }[this.textAlign] ?? x
    window.drawn.push({ canvas: this.canvas.closest("figure")?.innerText.split("\n")[0] ?? "", text, y, left, right: left + width, width: this.canvas.width, align: this.textAlign })
    return fillText.call(this, text, x, y, ...rest)
  }
}

for (const [name, viewport] of Object.entries({ desktop, phone: handset })) {
  test(`labels of the axes are exact and not cut off, and time axes have times, ${name}`, async () => {
    const [vault] = await vaultNames()
    for (const range of ["updates", "7", "30", "all"]) {
      const { page, wrong, close } = await open("/status", { viewport })
      await page.addInitScript(recordLabels)
      await page.goto(`${ready.api}/vault/${vault.address}?range=${range}`)
      await page.locator("figure.chart canvas").nth(3).waitFor()
      await settled(page)
      const drawn = await page.evaluate(() => window.drawn)
      const cut = drawn.filter(({ left, right, width }) => left < 0 || right > width)
      assert.deepEqual(cut, [], `range ${range}: labels that are cut off`)
      const units = { "": 1, K: 1e3, M: 1e6, B: 1e9, T: 1e12 }
      const values = drawn.filter(({ align }) => align === "right").map(({ canvas, text, y }) => {
        const [, number, unit] = /^(-?[\d.]+)([KMBT]?)$/.exec(text) ?? assert.fail(`an axis has the label ${text}`)
        return { canvas, y, value: Number(number) * units[unit] }
      })
      // On an axis equal distances are equal differences, which a rounded label would violate.
      const runs = []
      for (const one of values) {
        const run = runs.at(-1)
        if (run !== undefined && one.canvas === run[0].canvas && one.y < run.at(-1).y) run.push(one)
        else runs.push([one])
      }
      const long = runs.filter((run) => run.length >= 3)
      assert.ok(long.length >= 3, `range ${range}: only ${long.length} axes have three labels`)
      for (const run of long) {
        const [first, last] = [run[0], run.at(-1)]
        const slope = (last.value - first.value) / (last.y - first.y)
        for (const { y, value, canvas } of run) assert.ok(Math.abs(first.value + slope * (y - first.y) - value) <= Math.abs(last.value - first.value) * 0.02, `${canvas}: ${run.map((one) => one.value)}`)
        assert.equal(new Set(run.map(({ value }) => value)).size, run.length, `two ticks have one label: ${run.map((one) => one.value)}`)
      }
      if (range === "7") assert.ok(drawn.some(({ text }) => /\d\d:\d\d/.test(text) || /^\d+ [A-Z][a-z]{2}$/.test(text)), "the axis has no time")
      assert.deepEqual(wrong, [])
      await close()
    }
  })
}

/** Enters the key of the first demo partner. */
async function signIn(page) {
  await page.locator("input[type=password]").first().fill(ready.partners[0].apiKey)
  await page.getByRole("button", { name: "Use the key" }).click()
  await page.getByText("Signed in").waitFor()
}

const failedDelivery = (delivery) => ({
  ...delivery, state: "failed", finishedAt: delivery.createdAt, nextAttemptAt: null,
  attempts: [1, 2, 3, 4].map((number) => ({ number, url: `https://partner.example/${"hook/".repeat(60)}`, startedAt: delivery.createdAt, durationMs: 10_000, status: null, error: `Post "https://partner.example/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers) ${"x".repeat(300)}` })),
})

for (const [name, viewport] of Object.entries({ "1,440 px": desktop, "390 px": handset })) {
  test(`a failed delivery with a long error is readable at ${name}: its state and its replay are on the screen`, async () => {
    const { page, wrong, close } = await open("/partner?view=webhooks", { viewport })
    await page.route(/\/webhooks\/deliveries\?/, async (route) => {
      const answer = await route.fetch()
      const body = await answer.json()
      body.data = body.data.map(failedDelivery)
      await route.fulfill({ response: answer, json: body })
    })
    await signIn(page)
    const table = page.getByRole("region", { name: "Deliveries" })
    await table.waitFor()
    await settled(page)
    for (const part of [table.getByText("Retries exhausted").first(), table.getByRole("button", { name: /^Replay/ }).first(), table.locator("summary").first(), table.locator("a[href*='/partner/delivery/']").first()]) {
      const box = await part.boundingBox()
      assert.ok(box !== null && box.x >= 0 && box.x + box.width <= viewport.width, `${await part.innerText()} is at ${JSON.stringify(box)}`)
    }
    await page.screenshot({ path: `${process.env.SHOTS}/failed-delivery-${viewport.width}.png`, fullPage: true })
    await table.locator("summary").first().click()
    const error = table.getByText(/Client.Timeout exceeded/).first()
    const box = await error.boundingBox()
    assert.ok(box.x >= 0 && box.x + box.width <= viewport.width, `the error is at ${JSON.stringify(box)}`)
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0)
    assert.deepEqual(wrong, [])
    await close()
  })
}

test("amounts of different assets are never one total", async () => {
  const block = await finalBlock()
  const vaults = await vaultNames()
  assert.ok(new Set(vaults.map(({ asset }) => asset.address)).size > 1, "the demo has vaults of two assets")
  const { page, wrong, close } = await open(`/users?asOfBlock=${block}&sortBy=totalDeposited`)
  assert.equal(await page.locator("tbody a.number").count(), 0)
  await page.getByText("whose amounts do not add up").waitFor()
  assert.equal(await page.getByRole("link", { name: "Export CSV" }).count(), 0, "a file with totals over different assets")
  // In a single vault they are amounts of one asset, so they can be sorted.
  await page.getByRole("link", { name: vaults[0].name }).first().click()
  await page.getByRole("columnheader", { name: `Total deposited, ${vaults[0].asset.symbol}` }).waitFor()
  const users = (await api(`/api/v1/users?pageSize=100&asOfBlock=${block}`)).data
  let mixed = null
  for (const { address } of users) {
    const { holdings } = (await api(`/api/v1/users/${address}?asOfBlock=${block}`)).data
    const assets = new Set(holdings.deposits.map(({ vaultAddress }) => vaults.find((vault) => vault.address === vaultAddress).asset.address))
    if (assets.size > 1) mixed = { address, holdings }
  }
  assert.ok(mixed, "a user has deposited two assets")
  await page.goto(`${ready.api}/user/${mixed.address}?asOfBlock=${block}`)
  await page.locator(".figures").first().waitFor()
  await settled(page)
  const shown = await page.locator(".figures").evaluateAll((all) => all.map((figures) => [figures.querySelector("dt").textContent, figures.querySelector("dd [title]").title]))
  const want = {}
  for (const { vaultAddress, _sum } of mixed.holdings.deposits) {
    const { symbol } = vaults.find((vault) => vault.address === vaultAddress).asset
    want[`Total deposited, ${symbol}`] = String(BigInt(want[`Total deposited, ${symbol}`] ?? 0) + BigInt(_sum.assetAmount))
  }
  assert.deepEqual(Object.fromEntries(shown.map(([name, title]) => [name, native(title)]).filter(([name]) => name in want)), want)
  assert.ok(!(await page.locator("body").innerText()).includes(" + "), "no total is of two assets")
  // The same for the partner's volume.
  await page.goto(`${ready.api}/partner?asOfBlock=${block}`)
  await signIn(page)
  const stats = (await api(`/api/v1/partner/stats?asOfBlock=${block}`, { "x-api-key": ready.partners[0].apiKey })).data
  const volume = {}
  for (const { vaultAddress, totalVolume } of stats.byVault) {
    const { symbol } = vaults.find((vault) => vault.address === vaultAddress).asset
    volume[symbol] = String(BigInt(volume[symbol] ?? 0) + BigInt(totalVolume))
  }
  const figures = page.locator(".figures > div", { hasText: "Total deposited through you" })
  await until("figure for each asset", async () => (await figures.count()) === Object.keys(volume).length)
  assert.deepEqual((await amounts(figures)).sort(), Object.values(volume).sort())
  assert.deepEqual(wrong, [])
  await close()
})

test("the waiting time ends at the block of the page, and the block is found by its time", async () => {
  const vaults = await vaultNames()
  let found = null
  await until("queue at a final block", async () => {
    const block = await finalBlock()
    for (const vault of vaults) {
      const { data } = await api(`/api/v1/queues/withdrawals?vault=${vault.address}&asOfBlock=${block}`)
      if (data.length > 0) found = { vault, block, data }
    }
    return found !== null
  })
  const at = (await api(`/api/v1/block?asOfBlock=${found.block}`)).data.timestamp
  const { page, wrong, close } = await open(`/vault/${found.vault.address}?view=queue&asOfBlock=${found.block}`)
  const cells = page.getByRole("region", { name: "Withdrawal queue" }).locator("td[data-label='Pending for']")
  await until("ages", async () => (await cells.count()) === found.data.length)
  const [first] = await cells.allInnerTexts()
  const seconds = Math.floor((Date.parse(at) - Date.parse(found.data[0].requestedAt)) / 1000)
  const parts = { d: 86400, h: 3600, min: 60, s: 1 }
  const shown = [...first.matchAll(/(\d+) (d|h|min|s)/g)].reduce((sum, [, n, unit]) => sum + Number(n) * parts[unit], 0)
  assert.ok(/\d/.test(first) && seconds - shown >= 0 && seconds - shown < Math.max(60, seconds / 20), `${first} for ${seconds} s`)
  // The time of the block leads back to a block with the same state.
  assert.equal((await api(`/api/v1/block?time=${at}`)).data.timestamp, at)
  // A browser omits the seconds of the value if they are zero.
  assert.equal(await page.locator("input[name=time]").inputValue(), at.slice(0, 19).replace(/:00$/, ""))
  assert.deepEqual(wrong, [])
  await close()
})

test("filters and the replay of failed deliveries cover every delivery, and a delivery has its own page", async () => {
  const { page, wrong, close } = await open("/partner?view=webhooks", { viewport: desktop })
  const requested = []
  page.on("request", (request) => request.url().includes("/deliveries?") && requested.push(new URL(request.url()).searchParams))
  await signIn(page)
  await page.locator("select[name=state]").selectOption("delivered")
  await page.waitForURL(/state=delivered/)
  await until("a request with the filter", async () => requested.some((query) => query.get("state") === "delivered" && query.get("pageSize") === "20"))
  const key = { "x-api-key": ready.partners[0].apiKey }
  await until("list of the API", async () => {
    const { data, meta } = await api("/api/v1/partner/webhooks/deliveries?state=delivered&pageSize=20", key)
    const links = await page.getByRole("region", { name: "Deliveries" }).locator("a[href*='/partner/delivery/']").evaluateAll((all) => all.map((link) => link.pathname.split("/").pop()))
    return meta.total > 0 && links.every((id) => data.some(({ eventId }) => eventId === id) || links.length === 20)
  })
  assert.ok(requested.some((query) => query.get("state") === "failed" && query.get("pageSize") === "1"), "the server counts failed ones")
  const [delivery] = (await api("/api/v1/partner/webhooks/deliveries?state=delivered&pageSize=1", key)).data
  await page.locator("input[name=event]").fill(delivery.eventId)
  await page.locator("input[name=event]").press("Enter")
  await page.waitForURL(new RegExp(`/partner/delivery/${delivery.eventId}$`))
  const detail = (await api(`/api/v1/partner/webhooks/deliveries/${delivery.eventId}`, key)).data
  await page.getByText("X-Service-Event-Id").first().waitFor()
  assert.deepEqual(JSON.parse(await page.getByLabel("Body of the request").innerText()), JSON.parse(detail.request.body))
  assert.equal(await page.locator("section.attempt").count(), detail.attempts.length)
  await page.screenshot({ path: `${process.env.SHOTS}/delivery.png`, fullPage: true })
  assert.deepEqual(wrong, [])
  await close()
})

test("a wrong key is rejected before it is used, even on a view without requests, and a stored key lasts as long as the tab", async () => {
  const { page, wrong, close } = await open("/partner?view=verify")
  await page.locator("input[type=password]").first().fill("nk_test_wrong")
  await page.getByRole("button", { name: "Use the key" }).click()
  await page.getByRole("alert").getByText("This key is unknown or was revoked").waitFor()
  assert.equal(await page.getByText("Signed in").count(), 0)
  wrong.length = 0 // the browser reports the 401
  await page.getByLabel("keep it for this tab").check()
  await signIn(page)
  await page.reload()
  await page.getByText("Signed in").waitFor()
  await page.getByRole("button", { name: "Forget the key" }).click()
  await page.reload()
  await page.getByRole("button", { name: "Use the key" }).waitFor()
  assert.equal(await page.evaluate(() => sessionStorage.length), 0)
  assert.deepEqual(wrong, [])
  await close()
})

test("the documentation follows the theme, and shows no Markdown", async () => {
  const { page, wrong, close } = await open("/status")
  await page.locator(".theme select").selectOption("dark")
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const dark = await ground()
  await page.goto(`${ready.api}/docs`)
  await page.locator("details#listVaultUsers").waitFor()
  assert.equal(await ground(), dark)
  await page.locator("#theme").selectOption("light")
  assert.notEqual(await ground(), dark)
  await page.goto(`${ready.api}/docs/architecture`)
  assert.notEqual(await ground(), dark)
  await page.goto(`${ready.api}/docs#getSeries`)
  await page.locator("details#getSeries[open]").waitFor()
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)))
  const texts = await page.evaluate(() => [...document.querySelectorAll("main p, main li, main .hint, main td")].filter((one) => !one.closest("pre")).map((one) => [...one.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join(" ")))
  assert.ok(texts.length > 500, `${texts.length} texts`)
  assert.deepEqual(texts.filter((text) => /\*\*|`|^\|/.test(text)), [])
  assert.ok((await page.locator("#conventions strong").count()) > 5)
  await page.locator("details#getSeries").getByRole("button", { name: "Python" }).click()
  await page.locator("details#getSeries").getByText("urllib.request").waitFor()
  assert.deepEqual(wrong, [])
  await close()
})

test("the documentation sends requests, also for the stream, which has no end", async () => {
  const { page, wrong, close } = await open("/docs#streamEvents")
  const stream = page.locator("details#streamEvents")
  await stream.getByRole("button", { name: "Send" }).click()
  await stream.locator("pre", { hasText: "content-type: text/event-stream" }).filter({ hasText: "event: unit" }).waitFor()
  assert.deepEqual(wrong, [])
  await close()
})

test("compare opens with blocks that have data", async () => {
  const { page, wrong, close } = await open("/compare")
  const rows = page.getByRole("region", { name: "Vaults at both blocks" }).locator("tbody tr", { hasText: "NAV per share" })
  await rows.first().waitFor()
  const cells = await rows.evaluateAll((all) => all.map((row) => [...row.cells].slice(2, 4).map((cell) => cell.innerText.trim())))
  for (const pair of cells) assert.ok(pair.every((text) => /\d/.test(text)), `a vault has ${pair}`)
  assert.deepEqual(wrong, [])
  await close()
})

test("an unknown path shows a page about that, with the status 404", async () => {
  for (const path of ["/nonsense", "/users/", "/docs/nonsense"]) {
    const { page, close } = await open("/status")
    const answer = await page.goto(ready.api + path)
    assert.equal(answer.status(), 404, path)
    await page.getByRole("heading", { name: "Page not found" }).waitFor()
    await close()
    const json = await fetch(ready.api + path)
    assert.equal((await json.json()).error.code, "NOT_FOUND", path)
  }
})

test("the accountant's file adds up to the page, in each asset", async () => {
  const block = await finalBlock()
  const vaults = await vaultNames()
  const users = (await api(`/api/v1/users?sortBy=totalWithdrawn&asOfBlock=${block}`)).data
  for (const { address } of users.slice(0, 2)) {
    const { page, wrong, close } = await open(`/user/${address}?asOfBlock=${block}`)
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV for accounting" }).click()])
    const [head, ...rows] = readFileSync(await download.path(), "utf8").trimEnd().split("\r\n").map((line) => line.split(","))
    const column = (name) => head.indexOf(name)
    const sums = {}
    for (const row of rows) {
      const asset = row[column("Asset")]
      const { decimals } = vaults.find((vault) => vault.asset.symbol === asset).asset
      for (const [name, side] of [["Total deposited", "In"], ["Total withdrawn", "Out"]]) {
        const [whole, fraction = ""] = (row[column(side)] || "0").split(".")
        const key = `${name}, ${asset}`
        sums[key] = (sums[key] ?? 0n) + BigInt(whole + fraction.padEnd(decimals, "0"))
      }
    }
    const shown = await page.locator(".figures > div").evaluateAll((all) => all.map((figure) => [figure.querySelector("dt").textContent, figure.querySelector("dd [title]").title]))
    const totals = Object.fromEntries(shown.filter(([name]) => name.startsWith("Total")).map(([name, title]) => [name, native(title)]))
    assert.ok(rows.length > 0)
    assert.deepEqual(Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, String(sum)])), totals)
    assert.deepEqual(wrong, [])
    await close()
  }
})

test("one search box leads to addresses, transactions, blocks, requests and events", async () => {
  const [vault] = await vaultNames()
  const [event] = (await api("/api/v1/events?kind=DepositAccepted&pageSize=1&asOfBlock=" + await finalBlock())).data
  const [request] = (await api(`/api/v1/vaults/${vault.address}/withdrawals?pageSize=1&page=2`)).data
  const { page, wrong, close } = await open("/")
  const find = async (text) => {
    await page.getByRole("searchbox").fill(text)
    await page.getByRole("searchbox").press("Enter")
  }
  await find(vault.address.toLowerCase())
  await page.getByRole("heading", { name: vault.name }).waitFor()
  await find(event.userAddress)
  await page.getByRole("heading", { name: /^User/ }).waitFor()
  await find(event.txHash)
  await page.getByRole("heading", { name: /^Transaction/ }).waitFor()
  await page.getByText("in the chain").waitFor()
  await page.screenshot({ path: `${process.env.SHOTS}/transaction.png`, fullPage: true })
  await find(request.requestIndex)
  await page.getByRole("link", { name: `Withdrawal request ${request.requestIndex} of ${vault.name}` }).click()
  await page.waitForURL(new RegExp(`/tx/${request.txHash}`))
  await find("block 20")
  await page.getByRole("link", { name: "The vaults as of block 20" }).click()
  await page.waitForURL(/asOfBlock=20/)
  assert.deepEqual(wrong, [])
  await close()
})

/** Counts the clicks on the way from the front page. */
async function inThreeClicks(what, walk, options) {
  const { page, wrong, close } = await open("/", options)
  let clicks = 0
  await walk(page, async (locator) => {
    clicks++
    await locator.click()
  })
  assert.ok(clicks <= 3, `${what} takes ${clicks} clicks`)
  assert.deepEqual(wrong, [], what)
  await close()
}

test("how was this user's total computed: in three clicks", async () => {
  await inThreeClicks("a user's total", async (page, click) => {
    await click(page.getByRole("link", { name: "Users", exact: true }))
    await click(page.locator("tbody a[href*='/user/']").first())
    await click(page.locator("a.number[href*='explain']").first())
    await page.getByRole("dialog").getByText(/last sum is the number/).waitFor()
  })
})

test("what did the queue look like at a time: in three clicks", async () => {
  const [vault] = await vaultNames()
  const block = Number(await finalBlock()) - 20
  const { timestamp } = (await api(`/api/v1/block?asOfBlock=${block}`)).data
  await inThreeClicks("a queue of the past", async (page, click) => {
    await click(page.getByRole("link", { name: vault.name }).first())
    await click(page.getByRole("link", { name: "Queue", exact: true }))
    await page.locator("input[name=time]").fill(timestamp.slice(0, 19))
    await page.locator("input[name=time]").press("Enter")
    await page.waitForURL(/asOfBlock=\d+/)
    const chosen = new URL(page.url()).searchParams.get("asOfBlock")
    await settled(page)
    const want = (await api(`/api/v1/queues/withdrawals?vault=${vault.address}&asOfBlock=${chosen}&pageSize=20`)).data
    const rows = page.getByRole("region", { name: "Withdrawal queue" }).locator("tbody tr")
    await until("queue of that block", async () => (await rows.count()) === want.length)
    const at = (await api(`/api/v1/block?asOfBlock=${chosen}`)).data.timestamp
    assert.equal(at, timestamp)
  })
})

test("did my webhook arrive, what was sent and what did my server respond: in three clicks", async () => {
  const key = { "x-api-key": ready.partners[0].apiKey }
  await until("delivered webhook", async () => (await api("/api/v1/partner/webhooks/deliveries?state=delivered&pageSize=1", key)).data.length > 0)
  await inThreeClicks("a delivery", async (page, click) => {
    await click(page.getByRole("link", { name: "Partner", exact: true }))
    // The key is typed and entered with Enter.
    await page.locator("input[type=password]").first().fill(ready.partners[0].apiKey)
    await page.locator("input[type=password]").first().press("Enter")
    await page.getByText("Signed in").waitFor()
    await click(page.getByRole("link", { name: "Webhooks", exact: true }))
    await click(page.getByRole("region", { name: "Deliveries" }).locator("tr", { hasText: "Delivered" }).first().locator("a[href*='/partner/delivery/']"))
    await page.getByLabel("Body of the request").waitFor()
    await page.locator("section.attempt .badge.good").first().waitFor()
  })
})

test("what did this vault earn in 30 days, and from which two updates: in three clicks", async () => {
  const [vault] = await vaultNames()
  await inThreeClicks("a yield", async (page, click) => {
    await click(page.getByRole("link", { name: vault.name }).first())
    await click(page.locator(".figures > div", { hasText: "30 days" }).locator("a.yield").first())
    const drawer = page.getByRole("dialog")
    await drawer.locator("tbody tr").nth(1).waitFor()
    const { data } = await api(`/api/v1/vaults/${vault.address}/series?interval=week`)
    const found = data.yields.find(({ days }) => days === 30)
    const text = (await drawer.innerText()).replaceAll(",", "")
    assert.ok(text.includes(found.from.blockNumber), `${text} names block ${found.from.blockNumber}`)
    await page.screenshot({ path: `${process.env.SHOTS}/yield.png` })
    await click(drawer.getByRole("link", { name: "Verify" }).first())
    await page.getByRole("dialog").getByText("The last event is the number.").waitFor()
  })
})

test("how long do withdrawals take: in three clicks", async () => {
  const [vault] = await vaultNames()
  await inThreeClicks("the median wait", async (page, click) => {
    await click(page.getByRole("link", { name: vault.name }).first())
    const figure = page.locator(".figures > div", { hasText: "Median wait for funding" })
    await figure.waitFor()
    const { data } = await api(`/api/v1/vaults/${vault.address}/funding`)
    assert.equal(data.medianSeconds === null, !/\d+ (d|h|min|s)/.test(await figure.locator("dd").innerText()))
  })
})

for (const [name, viewport] of Object.entries({ desktop: wide, phone })) {
  test(`pages load without layout shifts, and buttons are large enough, ${name}`, async () => {
    const [vault] = await vaultNames()
    const user = (await api("/api/v1/users?sortBy=firstSeen&sortOrder=asc")).data[0].address
    // The newest events move down as others appear, which is intended.
    const events = `/events?asOfBlock=${await finalBlock()}`
    for (const path of ["/", `/vault/${vault.address}`, `/vault/${vault.address}?view=queue`, "/users", `/user/${user}`, events, "/compare", "/status", "/partner"]) {
      const { page, wrong, close } = await open("/status", { viewport })
      await page.addInitScript(() => {
        window.shifts = []
        new PerformanceObserver((list) => list.getEntries().forEach((entry) => entry.hadRecentInput || window.shifts.push([entry.value, ...entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? "")]))).observe({ type: "layout-shift", buffered: true })
      })
      await page.goto(ready.api + path)
      await page.locator("h1").first().waitFor()
      await settled(page)
      const shifts = await page.evaluate(() => window.shifts)
      const sum = shifts.reduce((all, [value]) => all + value, 0)
      assert.ok(sum <= 0.05, `${path} shifts by ${sum}: ${JSON.stringify(shifts.filter(([value]) => value > 0.01))}`)
      // Shorter or longer numbers do not move what is below them.
      const moved = await page.locator(".figures").evaluateAll((all) => ["0", "12", "123,456.78 DUSD"].filter((text) => {
        const ends = () => all.map((figures) => figures.getBoundingClientRect().bottom).join()
        const before = ends()
        all.forEach((figures) => figures.querySelectorAll(text.length > 2 ? ".wide dd" : "dd").forEach((dd) => (dd.textContent = text)))
        return ends() !== before
      }))
      assert.deepEqual(moved, [], `${path}: these numbers change the height of the figures`)
      await page.evaluate(axe)
      const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["target-size"], rules: { "target-size": { enabled: true } } }))
      assert.deepEqual(violations.flatMap(({ nodes }) => nodes.map(({ html }) => html)), [], `${path}: too small to press`)
      assert.deepEqual(wrong, [], path)
      await close()
    }
  })
}

test("a transaction, an address and a block lead to the operator's explorer, in a new tab without a referrer", async () => {
  const { data: [event] } = await api(`/api/v1/events?kind=DepositAccepted&pageSize=1&asOfBlock=${await finalBlock()}`)
  for (const path of [`/tx/${event.txHash}`, `/user/${event.userAddress}`, `/vault/${event.vaultAddress}?view=deposits`]) {
    const { page, wrong, close } = await open(path)
    await page.locator("a.outside").first().waitFor()
    const links = await page.locator("a.outside").evaluateAll((all) => all.map(({ href, rel, target, ariaLabel }) => ({ href, rel, target, ariaLabel })))
    for (const { href, rel, target, ariaLabel } of links) {
      const [, kind, value] = /^https:\/\/explorer\.example\/(tx|address|block)\/(\w+)$/.exec(href) ?? assert.fail(`${path} links to ${href}`)
      assert.deepEqual({ rel, target }, { rel: "noopener noreferrer", target: "_blank" }, href)
      assert.match(ariaLabel, new RegExp(`^${{ tx: "Transaction", address: "Address", block: "Block" }[kind]} ${value} in an external explorer`))
    }
    const has = (kind, value) => links.some(({ href }) => href === `https://explorer.example/${kind}/${value}`)
    if (path.startsWith("/tx/")) assert.ok(has("tx", event.txHash) && has("block", event.blockNumber) && has("address", event.userAddress), path)
    else assert.ok(has("address", path.startsWith("/user/") ? event.userAddress : event.vaultAddress), path)
    assert.deepEqual(wrong, [], path)
    await close()
  }
})

test("the status shows the uptime that the programs recorded, and marks days without a record", async () => {
  await until("record of every program", async () => Object.keys((await api("/status")).data.uptime?.programs ?? {}).length === 4)
  const { page, wrong, close } = await open("/status")
  const { uptime } = (await api("/status")).data
  const rows = page.getByRole("region", { name: "Uptime" }).locator("tbody tr")
  for (const [program, { recorded }] of Object.entries(uptime.programs)) {
    const row = rows.filter({ hasText: `navlog ${program}` })
    const bars = row.getByRole("img", { name: new RegExp(`^${program}, 90 days to ${uptime.to}: \\d+ recorded, \\d+ not recorded\\.`) })
    await bars.waitFor()
    const shown = await bars.locator("rect").evaluateAll((all) => all.map((bar) => bar.querySelector("title").textContent))
    assert.equal(shown.length, 90)
    // All other days are before this system's first record.
    for (const [i, seconds] of recorded.entries()) assert.equal(/: not recorded$/.test(shown[i]), seconds === null, shown[i])
    await until("share of its role", async () => /^\d+(\.\d\d)? %$/.test((await row.locator("td").last().innerText()).trim()))
  }
  assert.deepEqual(wrong, [])
  await close()
})

test("how did my endpoint do: attempts, failures and the median time by day, as the API has them", async () => {
  const key = { "x-api-key": ready.partners[0].apiKey }
  await until("attempt that succeeded", async () => (await api("/api/v1/partner/webhooks/health", key)).data.days.some(({ medianMs }) => medianMs !== null))
  for (const viewport of [wide, phone]) {
    const { page, wrong, close } = await open("/partner?view=webhooks", { viewport })
    await page.locator("input[type=password]").first().fill(ready.partners[0].apiKey)
    const answered = page.waitForResponse((response) => response.url().endsWith("/api/v1/partner/webhooks/health"))
    await page.locator("input[type=password]").first().press("Enter")
    const { data } = await (await answered).json()
    const bars = page.getByRole("img", { name: new RegExp(`^Successful attempts, 30 days to ${data.to}:`) })
    await bars.waitFor()
    const busy = data.days.filter(({ attempts }) => attempts > 0)
    assert.equal(await bars.locator("rect:not(.none)").count(), busy.length)
    const sum = (field) => busy.reduce((all, day) => all + day[field], 0).toLocaleString("en-US")
    const figure = async (title) => (await page.locator(".figures > div", { hasText: title }).locator("dd").innerText()).trim()
    assert.equal(await figure("Attempts, 30 days"), sum("attempts"))
    await page.getByText("Numbers by day").click()
    const row = page.getByRole("region", { name: "Attempts by day" }).locator("tbody tr").first()
    const shown = await row.locator("td").evaluateAll((cells) => cells.map((cell) => cell.textContent.trim()))
    const last = busy.at(-1)
    assert.deepEqual([shown[0], shown[1], shown[2], shown[4]], [last.day, last.attempts.toLocaleString("en-US"), last.failed.toLocaleString("en-US"), last.medianMs === null ? "–" : last.medianMs === 0 ? "<1 ms" : `${last.medianMs.toLocaleString("en-US")} ms`])
    await page.evaluate(axe)
    const { violations } = await page.evaluate(() => window.axe.run(document))
    assert.deepEqual(violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`), [])
    await page.screenshot({ path: `${process.env.SHOTS}/partner-health-${viewport.width}.png`, fullPage: true })
    assert.deepEqual(wrong, [])
    await close()
  }
})

// The last partner of the demo, because other tests use the keys of the others.
test("a partner rotates its secret and its key: confirmed first, shown once, and the page continues with the new key", async () => {
  const partner = ready.partners.at(-1)
  const state = (key) => fetch(`${ready.api}/api/v1/partner/webhooks`, { headers: { "x-api-key": key } })
  const { page, wrong, close } = await open("/partner?view=webhooks", { viewport: desktop })
  await page.locator("input[type=password]").first().fill(partner.apiKey)
  await page.getByRole("button", { name: "Use the key" }).click()
  await page.getByText("Signed in").waitFor()
  const rotate = async (title) => {
    const section = page.getByRole("region", { name: title })
    await section.getByRole("button", { name: `${title}…` }).click()
    const confirm = section.getByRole("group", { name: `Confirm: ${title}` })
    await confirm.getByRole("button", { name: "Cancel" }).click()
    await confirm.waitFor({ state: "detached" })
    await section.getByRole("button", { name: `${title}…` }).click()
    await confirm.getByRole("button", { name: `${title} now` }).click()
    return section
  }
  const valueOf = (section) => section.locator("code.long").innerText()

  let section = await rotate("Rotate the signing secret")
  await section.getByText("It is shown only once").waitFor()
  const secret = await valueOf(section)
  assert.match(secret, /^whsec_/)
  assert.notEqual(secret, partner.signingSecret)
  await section.getByText(/Deploy the new secret before .* UTC/).waitFor()
  await section.getByRole("button", { name: "Copy the new signing secret" }).waitFor()
  await page.screenshot({ path: `${process.env.SHOTS}/partner-rotated-secret.png`, fullPage: true })
  assert.deepEqual(wrong, [])

  // During the overlap no second rotation is possible, and the page shows until when.
  section = await rotate("Rotate the signing secret")
  await section.getByText(/A rotation of the secret is under way and ends at/).waitFor()
  assert.equal(await section.locator("code.long").count(), 0, "a secret is shown of a rotation that was refused")
  assert.ok(wrong.length > 0 && wrong.every((one) => one.includes("409")), wrong.join("\n"))
  wrong.length = 0

  section = await rotate("Rotate the API key")
  await section.getByText("The old key works until the next rotation").waitFor()
  const second = await valueOf(section)
  assert.equal((await state(partner.apiKey)).status, 200)
  assert.equal((await state(second)).status, 200)
  section = await rotate("Rotate the API key")
  await section.getByText(`The key that ends with ${partner.apiKey.slice(-4)} was revoked`).waitFor()
  const third = await valueOf(section)
  await until("end of the oldest key", async () => (await state(partner.apiKey)).status === 401)
  assert.equal((await state(third)).status, 200)
  // The page had the oldest key; its next request uses the newest one.
  await page.getByRole("link", { name: "Statistics" }).click()
  await page.getByText("Total deposited through you").first().waitFor()
  await page.getByRole("link", { name: "Webhooks", exact: true }).click()
  await page.getByRole("heading", { name: "Secret and keys" }).waitFor()
  await settled(page)
  assert.equal((await page.content()).includes(third), false, "the key is shown again")
  assert.deepEqual(wrong, [])
  for (const viewport of [wide, phone]) {
    await page.setViewportSize(viewport)
    await page.getByRole("button", { name: "Rotate the API key…" }).click()
    await page.evaluate(axe)
    const { violations } = await page.evaluate(() => window.axe.run(document))
    assert.deepEqual(violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`), [])
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0)
    await page.screenshot({ path: `${process.env.SHOTS}/partner-rotation-${viewport.width}.png`, fullPage: true })
    await page.getByRole("button", { name: "Rotate the API key…" }).click()
  }
  assert.deepEqual(wrong, [])
  await close()
})

test("a partner sets and removes the certificates for its URL, and the page names missing parts", async () => {
  const partner = ready.partners[0]
  const headers = { "x-api-key": partner.apiKey }
  const { webhookUrl } = (await api("/api/v1/partner/webhooks", headers)).data
  const dir = mkdtempSync(join(tmpdir(), "certificates-"))
  const file = (name) => join(dir, `${name}.pem`)
  const openssl = (...args) => execFileSync("openssl", args, { stdio: "pipe" })
  openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file("key"), "-out", file("certificate"), "-days", "1", "-subj", "/CN=of a browser")
  const { page, wrong, close } = await open("/partner?view=webhooks", { viewport: wide })
  await page.locator("input[type=password]").first().fill(partner.apiKey)
  await page.getByRole("button", { name: "Use the key" }).click()
  await page.getByText("There are none: public authorities are trusted").waitFor()
  const form = page.getByRole("form", { name: "Set certificates" })
  const set = form.getByRole("button", { name: "Set the certificates" })
  const choose = (label, name) => form.getByLabel(label).setInputFiles(name === null ? [] : file(name))

  await set.click()
  await page.getByText("Choose a file: the authorities, or the client certificate with its private key").waitFor()
  await choose(/^Client certificate/, "certificate")
  await set.click()
  await page.getByText("The private key of the client certificate is missing").waitFor()
  assert.deepEqual(wrong, [], "an incomplete form was sent")
  await choose(/^Private key/, "certificate")
  await set.click()
  await page.getByText("there is a certificate where only the private key belongs").waitFor()
  assert.ok(wrong.length > 0 && wrong.every((one) => one.includes("400")), wrong.join("\n"))
  wrong.length = 0

  // The certificate belongs to another URL, so the webhooks of this partner arrive as before.
  const other = "https://browser.example/hook"
  await choose(/^Private key/, "key")
  await form.getByLabel(/^For another URL/).fill(other)
  await set.click()
  const table = page.getByRole("region", { name: `Certificates for ${other}` })
  await table.getByText("CN=of a browser").first().waitFor()
  await page.getByText("Not in use: webhooks go to another URL").waitFor()
  const [stored] = (await api("/api/v1/partner/webhooks/certificates", headers)).data.certificates
  assert.deepEqual([stored.url, stored.used, stored.client.length], [other, false, 1])
  await table.getByText(stored.client[0].sha256).waitFor()
  assert.equal(await form.locator("input[type=file]").evaluateAll((all) => all.filter(({ files }) => files.length > 0).length), 0, "a file is still chosen")
  assert.equal((await page.content()).includes("PRIVATE KEY"), false)
  for (const viewport of [wide, phone]) {
    await page.setViewportSize(viewport)
    await page.evaluate(axe)
    const { violations } = await page.evaluate(() => window.axe.run(document))
    assert.deepEqual(violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`), [])
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0)
    await page.screenshot({ path: `${process.env.SHOTS}/partner-certificates-${viewport.width}.png`, fullPage: true })
  }

  await page.getByRole("button", { name: "Remove the client certificate…" }).click()
  await page.getByRole("group", { name: "Confirm: Remove the client certificate" }).getByRole("button", { name: "Remove the client certificate now" }).click()
  await page.getByText("There are none: public authorities are trusted").waitFor()
  assert.equal((await api("/api/v1/partner/webhooks", headers)).data.webhookUrl, webhookUrl)
  assert.deepEqual(wrong, [])
  await close()
  rmSync(dir, { recursive: true })
})

test("if the operator does not allow changes, the page offers none, and shows the certificates", async () => {
  const { page, wrong, close } = await open("/partner?view=webhooks")
  await page.route(/\/api\/v1\/partner\/webhooks$/, async (route) => {
    const answer = await route.fetch()
    const body = await answer.json()
    body.data.rotation = false
    await route.fulfill({ response: answer, json: body })
  })
  await signIn(page)
  await page.getByRole("heading", { name: "Delivery log" }).waitFor()
  await settled(page)
  assert.equal(await page.getByRole("heading", { name: "Secret and keys" }).count(), 0)
  await page.getByRole("heading", { name: "Certificates" }).waitFor()
  assert.equal(await page.getByRole("form", { name: "Set certificates" }).count(), 0)
  assert.deepEqual(wrong, [])
  await close()
})

test("a vault shows the operator's texts about it as plain text, and omits those that are not given", async () => {
  const [{ address }] = await vaultNames()
  const about = { description: "Lends <b>stablecoins</b> overnight.", managementFee: "2", performanceFee: "0.5", link: "https://vault.example/about" }
  for (const viewport of [desktop, handset]) {
    const { page, wrong, close } = await open(`/vault/${address}`, { viewport })
    assert.equal(await page.locator("p.about").count(), 0)
    assert.equal(await page.getByText(/Management fee|Performance fee/).count(), 0)
    await page.route(new RegExp(`/api/v1/vaults/${address}(\\?|$)`), async (route) => {
      const answer = await route.fetch()
      const body = await answer.json()
      Object.assign(body.data, about)
      await route.fulfill({ response: answer, json: body })
    })
    await page.reload()
    await page.getByText(about.description).waitFor()
    await settled(page)
    const figure = async (title) => (await page.locator(".figures > div", { hasText: title }).locator("dd").innerText()).trim()
    assert.deepEqual([await figure("Management fee"), await figure("Performance fee")], ["2\u2009%", "0.5\u2009%"])
    const link = page.getByRole("link", { name: "vault.example" })
    assert.deepEqual([await link.getAttribute("href"), await link.getAttribute("rel")], [about.link, "noopener noreferrer"])
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0)
    await page.screenshot({ path: `${process.env.SHOTS}/vault-about-${viewport.width}.png`, fullPage: true })
    assert.deepEqual(wrong, [])
    await close()
  }
})

test("a page whose requests are rejected says so, and neither that the server is offline nor that something was loaded", async () => {
  const { page, close } = await open("/docs")
  let rejected = true
  await page.route(/\/(status|api\/v1\/.*)$/, async (route) => {
    if (!rejected || route.request().isNavigationRequest()) return route.continue()
    return route.fulfill({ status: 429, headers: { "Retry-After": "1" }, json: { ok: false, error: { code: "RATE_LIMITED", message: "Too many requests.", requestId: "1" } } })
  })
  await page.goto(ready.api + "/")
  await page.getByText("The page retries in 1 s.").first().waitFor()
  await page.locator(".chip", { hasText: "No status" }).waitFor()
  assert.equal(await page.getByText(/Offline|loaded last/).count(), 0)
  rejected = false
  await page.locator(".chip", { hasText: "Live" }).waitFor()
  await settled(page)
  await close()
})

test("a number of any length is shown whole, and makes no page wider than the screen", async () => {
  const [{ address }] = await vaultNames()
  const longest = String(2n ** 191n - 1n)
  for (const viewport of [desktop, handset]) {
    for (const path of ["/", `/vault/${address}`]) {
      const { page, wrong, close } = await open("/status", { viewport })
      await page.route(new RegExp(`/api/v1/vaults(/${address})?(\\?|$)`), async (route) => {
        const answer = await route.fetch()
        const body = await answer.json()
        for (const vault of [body.data].flat()) Object.assign(vault, { navPerShare: longest, totalAssets: longest, totalSupply: longest })
        await route.fulfill({ response: answer, json: body })
      })
      await page.goto(ready.api + path)
      await page.getByText("3,138,550,867,693,340,381,917,894,711,603,833,208,051").first().waitFor()
      await settled(page)
      const cut = await page.locator(".figures > div").evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText))
      assert.deepEqual(cut, [], `${path} shows only a part of these`)
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0)
      await page.screenshot({ path: `${process.env.SHOTS}/long-${path.split("/")[1]}-${viewport.width}.png`, fullPage: true })
      assert.deepEqual(wrong, [])
      await close()
    }
  }
})

test("the page of a user states that current shares are not shown", async () => {
  const [{ address }] = (await api("/api/v1/users")).data
  const { page, wrong, close } = await open(`/user/${address}`)
  await page.getByText(/^Current shares are not shown: /).waitFor()
  await page.getByText("Total deposited").first().waitFor()
  await page.getByText("Total withdrawn").first().waitFor()
  assert.deepEqual(wrong, [])
  await close()
})
