// Exercises the TypeScript client on a live system: see smoke.sh.
import createClient from "openapi-fetch"
import type { paths } from "./navlog.js"

const [address, key, at] = process.argv.slice(2) as [string, string, string]
const block = Number(at)
const api = createClient<paths, "application/json">({ baseUrl: address })

function expect<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error))
  return answer.data
}

/** Pages through all users as of a block: how many there are, and how much they deposited. */
async function deposited(asOfBlock: number): Promise<[number, [string, string]]> {
  let users = 0
  let total = 0n
  for (let page = 1; ; page++) {
    const { data, meta } = expect(await api.GET("/api/v1/users", { params: { query: { page, pageSize: 3, asOfBlock } } }))
    for (const user of data) {
      total += BigInt(user.totalDeposited)
      users++
    }
    if (!meta.hasNextPage) {
      if (users !== meta.total) throw new Error(`as of block ${asOfBlock} there are ${meta.total} users, and the pages had ${users}`)
      return [users, [String(asOfBlock), String(total)]]
    }
  }
}

const stats = (key: string) => api.GET("/api/v1/partner/stats", { params: { query: { asOfBlock: block } }, headers: { "x-api-key": key } })

const status = expect(await api.GET("/status")).data
const vaults = expect(await api.GET("/api/v1/vaults", { params: { query: { asOfBlock: block } } })).data
const first = Math.max(...vaults.map((v) => Number(v.startBlock)))
const [, then] = await deposited(Math.floor((first + block) / 2))
const [users, now] = await deposited(block)
const partner = expect(await stats(key)).data
const { error } = await stats("nk_test_unknown")
// Only 431 is not JSON.
if (error === undefined || !("error" in error)) throw new Error(`a key of nobody is answered with ${error}`)
console.log(
  JSON.stringify({
    chainId: status.chainId,
    vaults: vaults.map((v) => `${v.address} ${v.totalAssets}`),
    users,
    then,
    now,
    partner: `${partner.partnerId} ${partner.totalVolume}`,
    refused: error.error.code,
  }),
)
