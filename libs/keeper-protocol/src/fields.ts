import { parseAddress, parsePrefix } from '@unbounded/ip';
import { parseEndpoint as parseRelay } from '@unbounded/relay-client';
import { parseEndpoint } from '@unbounded/wireguard/endpoint';
import { isKey } from '@unbounded/wireguard/key';
import { z } from 'zod';

/** Fields of these files. Each message says what is valid. */

/** As a check: whether the parser takes it. */
const takes =
  (parse: (text: string) => unknown) =>
  (text: string): boolean => {
    try {
      return parse(text) !== undefined;
    } catch {
      return false;
    }
  };

export const key = z.string().refine(isKey, 'must be a WireGuard key in base64 (44 characters)');
export const port = z.int().min(1).max(65_535);
/** Of keys; the folder is the only one whose keys are given to a process. */
export const keyFile = z
  .string()
  .max(255)
  .regex(/^\/etc\/wireguard\/[.-]*\w[\w.-]*$/, 'must be a file in /etc/wireguard');
export const wireGuardEndpoint = z
  .string()
  .max(64)
  .refine(takes(parseEndpoint), 'must be like 192.0.2.1:51820 or [2001:db8::1]:51820');
export const prefix = z.string().max(49).refine(takes(parsePrefix), 'must be a prefix like 192.0.2.0/24');
export const address = z.string().max(45).refine(takes(parseAddress), 'must be an IP address');
/** Of a relay. */
export const host = z
  .string()
  .max(253)
  .refine(
    takes((text) => parseRelay(text.includes(':') ? `[${text}]` : text).host === text || undefined),
    'must be an address or a DNS name',
  );

/**
 * At most so many elements. It stops at the first that is not valid: a file of millions of them must not become millions of
 * issues.
 */
export const list = <Element extends z.ZodType>(element: Element, most: number) =>
  z
    .array(z.unknown())
    .max(most)
    .transform((items, { issues }): z.output<Element>[] => {
      const elements: z.output<Element>[] = [];
      for (const [index, item] of items.entries()) {
        const checked = element.safeParse(item);
        if (!checked.success) {
          for (const { path, message } of checked.error.issues)
            issues.push({ code: 'custom', path: [index, ...path], message, input: item });
          return z.NEVER;
        }
        elements.push(checked.data);
      }
      return elements;
    });

export const isUnique = (texts: readonly string[]): boolean => new Set(texts).size === texts.length;
