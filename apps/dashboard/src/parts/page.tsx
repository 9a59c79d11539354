import { type ReactNode, useEffect, useRef } from 'react';

/** Where pages are led to, once there was one. */
let isFirst = true;

/** The content of a page, with its heading: where the focus goes when the page is another one. */
export const Page = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – network status`;
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, [title]);
  return (
    <main id="main">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </main>
  );
};
