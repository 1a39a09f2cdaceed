import { onchainTable } from "ponder";

// One row per event.
export const fact = onchainTable("fact", (t) => ({
  id: t.text().primaryKey(),
  kind: t.text().notNull(),
  vault: t.hex().notNull(),
  block: t.bigint().notNull(),
  time: t.bigint().notNull(),
  tx: t.hex().notNull(),
  logIndex: t.integer().notNull(),
  account: t.hex().notNull(),
  number: t.bigint().notNull(),
  assets: t.bigint().notNull(),
  shares: t.bigint().notNull(),
}));

// The running totals of an account.
export const account = onchainTable("account", (t) => ({
  address: t.hex().primaryKey(),
  events: t.integer().notNull(),
  assets: t.bigint().notNull(),
  shares: t.bigint().notNull(),
  last: t.bigint().notNull(),
}));
