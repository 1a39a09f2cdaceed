import { ponder } from "ponder:registry";
import { account, fact } from "ponder:schema";

type Context = Parameters<Parameters<typeof ponder.on>[1]>[0]["context"];
type Event = {
  id: string;
  block: { number: bigint; timestamp: bigint };
  transaction: { hash: `0x${string}` };
  log: { address: `0x${string}`; logIndex: number };
};

// One insert and one upsert, whatever the event.
async function add(
  { db }: Context,
  event: Event,
  kind: string,
  who: `0x${string}`,
  number: bigint,
  assets: bigint,
  shares: bigint,
) {
  await db.insert(fact).values({
    id: event.id,
    kind,
    vault: event.log.address,
    block: event.block.number,
    time: event.block.timestamp,
    tx: event.transaction.hash,
    logIndex: event.log.logIndex,
    account: who,
    number,
    assets,
    shares,
  });
  await db
    .insert(account)
    .values({ address: who, events: 1, assets, shares, last: event.block.number })
    .onConflictDoUpdate((row) => ({
      events: row.events + 1,
      assets: row.assets + assets,
      shares: row.shares + shares,
      last: event.block.number,
    }));
}

ponder.on("Vault:DepositAccepted", ({ event, context }) =>
  add(context, event, "deposit", event.args.owner, event.args.depositId, event.args.assets, event.args.shares));
ponder.on("Vault:WithdrawalRequested", ({ event, context }) =>
  add(context, event, "request", event.args.owner, event.args.requestIndex, event.args.assetsEstimate, event.args.shares));
ponder.on("Vault:WithdrawalFunded", ({ event, context }) =>
  add(context, event, "funding", event.args.owner, event.args.requestIndex, event.args.assets, event.args.shares));
ponder.on("Vault:WithdrawalClaimed", ({ event, context }) =>
  add(context, event, "claim", event.args.owner, event.args.requestIndex, event.args.assets, event.args.shares));
ponder.on("Vault:WithdrawalCancelled", ({ event, context }) =>
  add(context, event, "cancellation", event.args.owner, event.args.requestIndex, 0n, event.args.shares));
ponder.on("Vault:NavUpdated", ({ event, context }) =>
  add(context, event, "nav", event.args.updater, event.args.navId, event.args.totalAssets, event.args.totalSupply));
ponder.on("Vault:DepositsSwept", ({ event, context }) =>
  add(context, event, "sweep", event.args.custodian, event.args.sweepId, event.args.assets, 0n));
ponder.on("Vault:WithdrawalsSettled", ({ event, context }) =>
  add(context, event, "settlement", event.args.funder, event.args.settlementId, event.args.assets, event.args.shares));
