// The pages of a vault with a different protocol than the reference: without sweeps, with requests that have no estimate until they
// are settled. They are compared with the API as of one block, as in pages.test.mjs.
import assert from "node:assert/strict"
import { before, test } from "node:test"
import { readFileSync } from "node:fs"
import { api, finalBlock, native, open, ready, until } from "./live.mjs"

const [preset] = ready.presets
/** A final block at which the vault has users, a NAV and a queue. */
let block, vault

const of = (path, query = "") => api(`${path}?asOfBlock=${block}${query}`)
const queue = () => of("/api/v1/queues/withdrawals", `&vault=${preset.sources.vault}`)
const users = () => of(`/api/v1/vaults/${preset.sources.vault}/users`, "&sortBy=totalDeposited")

before(async () => {
  await until("final block at which the vault has a queue", async () => {
    block = await finalBlock()
    vault = (await of(`/api/v1/vaults/${preset.sources.vault}`)).data
    return vault.navPerShare !== null && (await queue()).meta.total > 0 && (await users()).data[0].totalWithdrawn !== "0"
  })
})

/** The amounts in a part of a page, in native units. */
const amounts = async (locator) => (await locator.locator("[title*='native units']").evaluateAll((all) => all.map((one) => one.title))).map(native)

test("the vault's page has the API's numbers, and does not mention sweeps", async () => {
  const { page, wrong, close } = await open(`/vault/${vault.address}?view=queue&asOfBlock=${block}`)
  assert.match(await page.locator("h1").innerText(), new RegExp(`${preset.name}.*${preset.symbol}`))
  const shown = await amounts(page.locator(".figures"))
  for (const field of ["navPerShare", "totalAssets", "totalSupply"]) assert.ok(shown.includes(vault[field]), `${field} is ${vault[field]}, and the page has ${shown}`)
  assert.equal(await page.locator(".figures > div", { has: page.getByText("Users", { exact: true }) }).locator("dd").innerText(), String(vault.stats.userCount))
  assert.equal(vault.capabilities.sweeps, false)
  assert.equal(await page.getByText("Deposits to sweep").count(), 0)
  assert.deepEqual(wrong, [])
  await close()
})

test("the queue is that of the API, in its order", async () => {
  const { data } = await queue()
  const { page, wrong, close } = await open(`/vault/${vault.address}?view=queue&asOfBlock=${block}`)
  const rows = page.getByRole("region", { name: "Withdrawal queue" }).locator("tbody tr")
  assert.equal(await rows.count(), data.length)
  for (const [i, request] of data.entries()) {
    const cell = (title) => rows.nth(i).locator(`td[data-label="${title}"]`)
    assert.equal((await cell("Request").innerText()).trim(), request.requestIndex)
    assert.deepEqual(await amounts(cell("Shares")), [request.shares])
    assert.ok((await cell("User").locator("a[href*='/user/']").getAttribute("href")).startsWith(`/user/${request.userAddress}`))
    assert.match(await cell("State").innerText(), request.claimable ? /claimable/ : /pending/)
  }
  await page.screenshot({ path: `${process.env.SHOTS}/preset-queue.png`, fullPage: true })
  assert.deepEqual(wrong, [])
  await close()
})

test("the page of a user has the API's numbers for the vault", async () => {
  const [{ address }] = (await users()).data
  const { data: user } = await of(`/api/v1/users/${address}`)
  const deposited = user.holdings.deposits.find(({ vaultAddress }) => vaultAddress === vault.address)
  const withdrawn = user.holdings.withdrawals.find(({ vaultAddress }) => vaultAddress === vault.address)
  const { page, wrong, close } = await open(`/user/${address}?asOfBlock=${block}`)
  const row = page.getByRole("region", { name: "By vault" }).locator("tbody tr", { hasText: vault.name })
  const cell = (title) => row.locator(`td[data-label="${title}"]`)
  assert.deepEqual(await amounts(cell("Total deposited")), [deposited._sum.assetAmount])
  assert.deepEqual(await amounts(cell("Total withdrawn")), [withdrawn._sum.assetsClaimed])
  assert.equal((await cell("Deposits").innerText()).trim(), String(deposited._count))
  assert.equal((await cell("Requests").innerText()).trim(), String(withdrawn._count))
  await page.screenshot({ path: `${process.env.SHOTS}/preset-user.png` })
  assert.deepEqual(wrong, [])
  await close()
})

test("the accountant's file has the vault, and adds up to the API's numbers", async () => {
  for (const { address } of (await users()).data.slice(0, 3)) {
    const { data: user } = await of(`/api/v1/users/${address}`)
    const { page, wrong, close } = await open(`/user/${address}?asOfBlock=${block}`)
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV for accounting" }).click()])
    const [head, ...rows] = readFileSync(await download.path(), "utf8").trimEnd().split("\r\n").map((line) => line.split(","))
    const sum = (side) =>
      String(
        rows
          .filter((row) => row[head.indexOf("Vault address")] === vault.address)
          .map((row) => (row[head.indexOf(side)] || "0").split("."))
          .reduce((all, [whole, fraction = ""]) => all + BigInt(whole + fraction.padEnd(vault.asset.decimals, "0")), 0n),
      )
    const holding = (list) => user.holdings[list].find(({ vaultAddress }) => vaultAddress === vault.address)?._sum
    assert.deepEqual([sum("In"), sum("Out")], [holding("deposits")?.assetAmount ?? "0", holding("withdrawals")?.assetsClaimed ?? "0"])
    assert.deepEqual(wrong, [])
    await close()
  }
})

test("new events of the vault appear by themselves, and the filter has its kinds", async () => {
  const { page, wrong, close } = await open(`/events?vault=${vault.address}`)
  await page.getByText("Live: new events appear").waitFor()
  const newest = async () => Number((await page.locator("tbody tr").first().locator("td").last().innerText()).replaceAll(",", ""))
  const first = await newest()
  await until("new event at the top", async () => (await newest()) > first)
  const kinds = await page.locator("select[name=kind] option").evaluateAll((all) => all.map((option) => option.value))
  for (const kind of vault.kinds) assert.ok(kinds.includes(kind), `${kind} is not in ${kinds}`)
  assert.deepEqual(wrong, [])
  await close()
})

test("a proof of the vault is neither verified nor refuted in the browser", async () => {
  const { page, wrong, close } = await open(`/vault/${vault.address}?asOfBlock=${block}&explain=/api/v1/vaults/${vault.address}&field=/stats/userCount&verify=20`)
  const drawer = page.getByRole("dialog")
  await drawer.getByText("No event on this page is verified.").waitFor()
  assert.equal(await drawer.locator(".badge.bad").count(), 0)
  assert.equal(await drawer.getByText(/only logs of the reference contracts/).count(), await drawer.locator("tbody tr").count())
  assert.deepEqual(wrong, [])
  await close()
})
