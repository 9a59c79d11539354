import { addressToBytes, parseAddress, parsePrefix } from '@unbounded/ip';
import {
  ADDRESS_TYPES,
  CT,
  CT_ADDRESSES,
  CT_DIRECTIONS,
  CT_STATES,
  CT_TRANSLATED,
  DYNSET,
  DYNSET_UPDATE,
  ETHERTYPE,
  FIB_ADDRESS_TYPE,
  FIB_DEVICE,
  FIB_DEVICE_NAME,
  FIB_FLAG,
  FIELDS,
  FULLY_RANDOM,
  ICMPV6,
  LOOKUP,
  MASQUERADE_FLAGS,
  META_KEYS,
  NAT,
  NAT_FLAG,
  NFPROTO,
  REGISTER,
  TCP,
  VERDICTS,
  bitwise,
  compare,
  fieldLength,
  hostOrder,
  immediate,
  instruction,
  limit,
  loadCt,
  loadFib,
  loadField,
  loadMeta,
  loadRouteMss,
  networkOrder,
  registerAt,
  storeAddress,
  storeCtMark,
  storeMark,
  storeMss,
  storeTrace,
  useCounter,
  verdict,
  type Instruction,
} from './instruction.codec.ts';
import { fieldBytes, interfaceName, prefixMask } from './operand.codec.ts';
import type { Expression, NatAddress, PayloadField, RawField, TableFamily } from './table.ts';
import { EXPRESSION } from './wire.codec.ts';

/** Turns typed expressions into instructions; keeps in mind what the rule has made sure of so far. */
class RuleCompiler {
  readonly #family: TableFamily;
  readonly #out: Instruction[] = [];
  #ipFamily: 'ip' | 'ip6' | undefined;
  #l4proto: number | undefined;

  constructor(family: TableFamily) {
    this.#family = family;
    if (family === 'ip' || family === 'ip6') this.#ipFamily = family;
  }

  compile(expressions: readonly Expression[]): readonly Instruction[] {
    for (const expression of expressions) {
      if ('match' in expression) this.#match(expression);
      else if ('set' in expression) this.#set(expression);
      else if ('copy' in expression) this.#copy(expression.copy);
      else this.#do(expression);
    }
    return this.#out;
  }

  #push(...instructions: Instruction[]): void {
    this.#out.push(...instructions);
  }

  /** IPv4 and IPv6 headers have nothing in common: a field of one is looked at in packets of one only. */
  #need(family: 'ip' | 'ip6'): void {
    if (this.#ipFamily === family) return;
    if (this.#ipFamily !== undefined)
      throw new RangeError(`a rule for ${this.#ipFamily} packets cannot look at ${family} headers`);
    this.#ipFamily = family;
    // Not the packet's protocol: behind a VLAN tag that is the one of the packet inside.
    if (this.#family === 'bridge')
      this.#push(loadField('ether.type'), compare('==', networkOrder('ether.type', ETHERTYPE[family], 2)));
    else if (this.#family === 'netdev')
      this.#push(loadMeta('protocol'), compare('==', networkOrder('protocol', ETHERTYPE[family], 2)));
    else this.#push(loadMeta('nfproto'), compare('==', Uint8Array.of(NFPROTO[family])));
  }

  #load(field: PayloadField | RawField, register?: number): void {
    const family = typeof field === 'string' ? FIELDS[field].family : undefined;
    if (family) this.#need(family);
    if (field === 'tcp.flags') this.#needProtocol(TCP);
    if (field === 'icmpv6.type') {
      this.#need('ip6');
      this.#needProtocol(ICMPV6);
    }
    this.#push(loadField(field, register));
  }

  #needProtocol(l4proto: number): void {
    if (this.#l4proto === l4proto) return;
    this.#l4proto = l4proto;
    this.#push(loadMeta('l4proto'), compare('==', Uint8Array.of(l4proto)));
  }

  /** The key of the set is what stands in the registers from the first one on. */
  #lookUp(set: string, op: '==' | '!='): void {
    this.#push(
      instruction('lookup', (w) =>
        w
          .attributeText(LOOKUP.set, set)
          .attributeBe32(LOOKUP.source, REGISTER.first)
          .attributeBe32(LOOKUP.flags, op === '!=' ? 1 : 0),
      ),
    );
  }

  #match(expression: Extract<Expression, { readonly match: string }>): void {
    switch (expression.match) {
      case 'meta':
        this.#matchMeta(expression);
        break;
      case 'payload':
        this.#load(expression.field);
        this.#matchPayload(expression);
        break;
      case 'set':
        this.#load(expression.field);
        this.#lookUp(expression.set, expression.op);
        break;
      case 'device':
        this.#push(loadMeta(expression.key));
        this.#lookUp(expression.set, expression.op);
        break;
      case 'raw':
        this.#matchRaw(expression);
        break;
      case 'pair':
        this.#matchPair(expression);
        break;
      case 'interface':
        this.#matchInterface(expression);
        break;
      case 'ct-state':
        this.#matchBits(
          'state',
          expression.states.reduce((sum, state) => sum | CT_STATES[state], 0),
        );
        break;
      case 'ct-translated':
        this.#matchBits('status', CT_TRANSLATED[expression.of]);
        break;
      case 'ct-direction':
        this.#push(loadCt('direction'), compare(expression.op, Uint8Array.of(CT_DIRECTIONS[expression.value])));
        break;
      case 'ct-address':
        this.#matchConnection(expression);
        break;
      case 'ct-address-set':
        this.#loadConnection(expression.family, expression);
        this.#lookUp(expression.set, expression.op);
        break;
      case 'ct-mark':
        this.#push(loadCt('mark'));
        this.#masked('ct mark', expression);
        break;
      case 'fib-type':
        this.#push(
          loadFib(FIB_ADDRESS_TYPE, FIB_FLAG[expression.address] | (expression.atDevice ? FIB_FLAG.iif : 0)),
          compare(expression.op, hostOrder('address type', ADDRESS_TYPES[expression.type], 4)),
        );
        break;
      case 'route-back':
        this.#push(
          loadFib(FIB_DEVICE, FIB_FLAG.saddr | FIB_FLAG.iif | FIB_FLAG.present),
          compare('==', hostOrder('route', expression.found ? 1 : 0, 4)),
        );
        break;
      case 'route-device':
        this.#push(loadFib(FIB_DEVICE_NAME, FIB_FLAG.saddr));
        this.#lookUp(expression.set, '==');
        break;
      case 'rate-below':
        this.#push(limit(expression));
    }
  }

  #matchRaw({ field, op, value: wanted, mask }: Extract<Expression, { readonly match: 'raw' }>): void {
    const length = fieldLength(field);
    this.#load(field);
    if (mask !== undefined) this.#push(bitwise(networkOrder('raw field mask', mask, length), new Uint8Array(length)));
    this.#push(compare(op, networkOrder('raw field', wanted, length)));
  }

  #matchPair({ fields: [first, second], set, op }: Extract<Expression, { readonly match: 'pair' }>): void {
    const length = fieldLength(first);
    if (length % 4 !== 0)
      throw new RangeError(`${first} has ${length} bytes: the first of a pair must fill whole words`);
    this.#load(first);
    this.#load(second, registerAt(length));
    this.#lookUp(set, op);
  }

  #matchInterface({ fields, set, op }: Extract<Expression, { readonly match: 'interface' }>): void {
    // What a field needs to be looked at takes the registers first.
    for (const field of fields) if (typeof field === 'string' && FIELDS[field].family) this.#need(FIELDS[field].family);
    this.#push(loadMeta('iif'));
    let bytes = 4;
    for (const field of fields) {
      this.#push(loadField(field, registerAt(bytes)));
      bytes += Math.ceil(fieldLength(field) / 4) * 4;
    }
    this.#lookUp(set, op);
  }

  #matchMeta(expression: Extract<Expression, { readonly match: 'meta' }>): void {
    const { key, op } = expression;
    this.#push(loadMeta(key));
    if (key === 'iifname' || key === 'oifname') {
      this.#push(compare(op, interfaceName(String(expression.value))));
      return;
    }
    const number = Number(expression.value);
    if (key === 'l4proto' && op === '==' && expression.mask === undefined) this.#l4proto = number;
    if (expression.mask === undefined) this.#push(compare(op, hostOrder(`meta ${key}`, number, META_KEYS[key].length)));
    else this.#masked(`meta ${key}`, { op, value: number, mask: expression.mask });
  }

  #masked(what: string, match: { readonly op: '==' | '!='; readonly value: number; readonly mask?: number }): void {
    if (match.mask !== undefined) this.#push(bitwise(hostOrder(`${what} mask`, match.mask, 4), new Uint8Array(4)));
    this.#push(compare(match.op, hostOrder(what, match.value, 4)));
  }

  #matchPayload(expression: Extract<Expression, { readonly match: 'payload' }>): void {
    const { field, op, value: wanted, mask } = expression;
    const { length } = FIELDS[field];
    if (typeof wanted === 'string' && wanted.includes('/')) {
      const prefix = parsePrefix(wanted);
      const bytes = addressToBytes({ family: prefix.family, value: prefix.address });
      if (bytes.length !== length) throw new RangeError(`${field} ${wanted} is of the wrong family`);
      this.#push(bitwise(prefixMask(length, prefix.length), new Uint8Array(length)), compare(op, bytes));
      return;
    }
    if (mask !== undefined) this.#push(bitwise(networkOrder(`${field} mask`, mask, length), new Uint8Array(length)));
    this.#push(compare(op, fieldBytes(field, wanted, length)));
  }

  /** Any of these bits is set. */
  #matchBits(key: 'state' | 'status', bits: number): void {
    this.#push(
      loadCt(key),
      bitwise(hostOrder(`ct ${key}`, bits, 4), new Uint8Array(4)),
      compare('!=', new Uint8Array(4)),
    );
  }

  #matchConnection(expression: Extract<Expression, { readonly match: 'ct-address' }>): void {
    const wanted = parseAddress(expression.value);
    this.#loadConnection(wanted.family === 4 ? 'ip' : 'ip6', expression);
    this.#push(compare(expression.op, addressToBytes(wanted)));
  }

  #loadConnection(
    family: 'ip' | 'ip6',
    { direction, address }: Pick<Extract<Expression, { readonly match: 'ct-address' }>, 'direction' | 'address'>,
  ): void {
    this.#need(family);
    this.#push(
      instruction('ct', (w) =>
        w
          .attributeBe32(CT.destination, REGISTER.first)
          .attributeBe32(CT.key, CT_ADDRESSES[family][address])
          .attributeU8(CT.direction, CT_DIRECTIONS[direction]),
      ),
    );
  }

  #set(expression: Extract<Expression, { readonly set: string; readonly match?: never }>): void {
    if (expression.set === 'tcp-mss') this.#setMss(expression.to);
    else if (expression.set === 'nftrace') this.#push(immediate(REGISTER.first, Uint8Array.of(1)), storeTrace());
    else if ('to' in expression) this.#setAddress(expression);
    else this.#setMark(expression);
  }

  #setAddress({ set: field, to }: Extract<Expression, { readonly set: 'ip.daddr' | 'ip6.daddr' }>): void {
    const address = parseAddress(to);
    const family = field === 'ip.daddr' ? 'ip' : 'ip6';
    if ((family === 'ip') !== (address.family === 4)) throw new RangeError(`${field} ${to} is of the wrong family`);
    this.#need(family);
    this.#push(immediate(REGISTER.first, addressToBytes(address)), storeAddress(field));
  }

  #setMark(expression: Extract<Expression, { readonly set: 'mark' | 'ct-mark' }>): void {
    const { value: bits, mask } = expression;
    const isCt = expression.set === 'ct-mark';
    if (mask === undefined) this.#push(immediate(REGISTER.first, hostOrder('mark', bits, 4)));
    else {
      if ((bits & ~mask) !== 0)
        throw new RangeError(`mark 0x${bits.toString(16)} has bits outside its mask 0x${mask.toString(16)}`);
      this.#push(
        isCt ? loadCt('mark') : loadMeta('mark'),
        bitwise(hostOrder('mask', ~mask >>> 0, 4), hostOrder('mark', bits, 4)),
      );
    }
    this.#push(isCt ? storeCtMark() : storeMark());
  }

  /** Writes 2 bytes at offset 2 of TCP option 2; packets without that option pass unchanged. */
  #setMss(to: 'route-mtu' | number): void {
    if (to === 'route-mtu') this.#push(...loadRouteMss());
    else this.#push(immediate(REGISTER.first, networkOrder('TCP MSS', to, 2)));
    this.#push(storeMss());
  }

  #copy(direction: 'mark-to-ct' | 'ct-to-mark'): void {
    if (direction === 'mark-to-ct') this.#push(loadMeta('mark'), storeCtMark());
    else this.#push(loadCt('mark'), storeMark());
  }

  #do(expression: Extract<Expression, { readonly do: string }>): void {
    switch (expression.do) {
      case 'counter':
        this.#push(expression.name === undefined ? instruction('counter') : useCounter(expression.name));
        break;
      case 'count-interface':
        this.#countInterface(expression.at);
        break;
      case 'notrack':
        this.#push(instruction('notrack'));
        break;
      case 'masquerade':
        this.#push(
          instruction('masq', (w) => expression.fullyRandom && w.attributeBe32(MASQUERADE_FLAGS, FULLY_RANDOM)),
        );
        break;
      case 'snat':
        this.#nat(0, expression.to);
        break;
      case 'dnat':
        this.#nat(1, expression.to, expression.port);
        break;
      case 'jump':
      case 'goto':
        this.#push(verdict(VERDICTS[expression.do], expression.chain));
        break;
      default:
        this.#push(verdict(VERDICTS[expression.do]));
    }
  }

  #countInterface(set: string): void {
    this.#push(
      loadMeta('iif'),
      instruction('dynset', (w) => {
        w.attributeText(DYNSET.set, set)
          .attributeBe32(DYNSET.op, DYNSET_UPDATE)
          .attributeBe32(DYNSET.key, REGISTER.first);
        w.nest(DYNSET.expression, () => w.attributeText(EXPRESSION.name, 'counter').nest(EXPRESSION.data, () => {}));
      }),
    );
  }

  /** Loads where a connection is translated to. */
  #loadNatAddress(to: NatAddress): 'ip' | 'ip6' {
    if (typeof to === 'object') {
      this.#load(to.field);
      return to.field === 'ip.saddr' ? 'ip' : 'ip6';
    }
    const address = parseAddress(to);
    const family = address.family === 4 ? 'ip' : 'ip6';
    this.#need(family);
    this.#push(immediate(REGISTER.first, addressToBytes(address)));
    return family;
  }

  #nat(type: number, to: NatAddress, port?: number): void {
    const family = this.#loadNatAddress(to);
    if (port !== undefined) this.#push(immediate(REGISTER.second, networkOrder('port', port, 2)));
    // A range of one, with its flags: what the kernel would fill in, and what it tells back.
    this.#push(
      instruction('nat', (w) => {
        w.attributeBe32(NAT.type, type).attributeBe32(NAT.family, NFPROTO[family]);
        w.attributeBe32(NAT.address, REGISTER.first).attributeBe32(NAT.lastAddress, REGISTER.first);
        if (port !== undefined) w.attributeBe32(NAT.port, REGISTER.second).attributeBe32(NAT.lastPort, REGISTER.second);
        w.attributeBe32(NAT.flags, NAT_FLAG.address | (port === undefined ? 0 : NAT_FLAG.port));
      }),
    );
  }
}

/** A rule's instructions. @throws RangeError, AddressSyntaxError naming the field */
export const compileRule = (family: TableFamily, expressions: readonly Expression[]): readonly Instruction[] =>
  new RuleCompiler(family).compile(expressions);
