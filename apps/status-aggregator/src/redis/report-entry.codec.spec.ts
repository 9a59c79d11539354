import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { epochJson, fieldsOf, parseHeldValue, parseReportEntry } from './report-entry.codec.ts';

const bytes = fc.uint8Array({ maxLength: 200 }).map((value) => Buffer.from(value));
const described = fc.record({
  epoch: fc.string({ minLength: 1, maxLength: 64 }),
  revision: fc.integer({ min: 1, max: 1e15 }),
  receivedMs: fc.integer({ min: 0, max: 8e15 }),
  order: fc.integer({ min: 1, max: 1e15 }),
  packed: bytes,
});

describe('what of reports lies in Redis', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(described, fc.option(fc.integer({ min: 1, max: 1e15 })), (one, base) => {
        const { epoch, revision, receivedMs, order, packed } = one;
        const head = `v1\n${order}\n${receivedMs}\n${epochJson(epoch)}\n${revision}\n`;
        expect(parseHeldValue(Buffer.concat([Buffer.from(head), packed]))).toEqual(one);
        const texts = ['n', 'a.b-1', 'e', epochJson(epoch), 'r', `${revision}`, 'b', `${base ?? ''}`];
        const fields = [...texts, 't', `${receivedMs}`, 'q', `${order}`, 'd'].map((text) => Buffer.from(text));
        const entry = parseReportEntry(fieldsOf([...fields, packed]));
        expect(entry).toEqual({ ...one, node: 'a.b-1', base: base ?? undefined });
      }),
    );
  });

  it('is nothing when it is anything else', () => {
    fc.assert(
      fc.property(fc.array(bytes), (fields) => {
        expect(parseReportEntry(fieldsOf(fields))).toBeUndefined();
        expect(fields.map(parseHeldValue).filter(Boolean)).toEqual([]);
      }),
    );
  });
});
